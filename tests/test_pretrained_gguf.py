"""GGUF: every block becomes the numbers its definition says, and a file that is not whole is refused in words."""

import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refusing

from mathllm.pretrained import gguf
from mathllm.pretrained.gguf import GGUF, dequantize

# Blocks. That their weights are those of the format's own library is proven in parity/test_checkpoints.py.

LAYOUT = {  # weights, bytes, places of the float16 numbers
    "Q4_0": (32, 18, (0,)), "Q4_1": (32, 20, (0, 2)), "Q5_0": (32, 22, (0,)), "Q5_1": (32, 24, (0, 2)),
    "Q8_0": (32, 34, (0,)), "Q4_K": (256, 144, (0, 2)), "Q5_K": (256, 176, (0, 2)), "Q6_K": (256, 210, (208,)),
}  # fmt: skip
NUMBERS = {"Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14}


def random_blocks(kind, count, rng):
    """Blocks of random bytes whose float16 numbers are ordinary ones (random bits would often mean infinity)."""
    _weights, size, halves = LAYOUT[kind]
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for start in halves:
        blocks[:, start : start + 2] = rng.normal(size=(count, 1)).astype("<f2").view(np.uint8)
    return blocks


@pytest.mark.parametrize("kind", LAYOUT)
def test_many_blocks_are_the_single_blocks_side_by_side(kind):
    count = 2 * gguf._SLICE // LAYOUT[kind][0] + 3  # more than one slice, and a rest
    blocks = random_blocks(kind, count, np.random.default_rng(1))
    whole = dequantize(blocks.tobytes(), kind, (count, LAYOUT[kind][0]))
    some = [0, 1, count // 2 - 1, count // 2, count - 4, count - 3, count - 1]
    for i in some:
        assert np.array_equal(whole[i], dequantize(blocks[i].tobytes(), kind, (LAYOUT[kind][0],)))


@given(st.integers(0, 0xFFFF))
def test_bfloat16_is_the_upper_half_of_a_float32(bits):
    found = dequantize(struct.pack("<H", bits), "BF16", (1,))
    assert found.view(np.uint32)[0] == bits << 16


def test_plain_types_become_float32():
    for kind, dtype in [("F32", "<f4"), ("F16", "<f2"), ("F64", "<f8"), ("I8", "i1"), ("I16", "<i2"), ("I32", "<i4")]:
        found = dequantize(np.array([[1, -2, 3]], dtype).tobytes(), kind, (1, 3))
        assert found.dtype == np.float32
        assert found.tolist() == [[1, -2, 3]]
    assert dequantize(b"", "Q4_1", (0, 32)).shape == (0, 32)


def test_bytes_may_have_gaps_and_one_size_is_a_shape():
    numbers = np.arange(4, dtype="<f4")
    gaps = np.repeat(numbers.view(np.uint8), 2)[::2]
    assert not gaps.flags.c_contiguous
    assert dequantize(gaps, "F32", 4).tolist() == [0, 1, 2, 3]


test_bytes_that_are_no_such_tensor_are_refused = refusing(
    (lambda: dequantize(bytes(84), "Q2_K", (256,)), ValueError, "not support the type 'Q2_K'; it supports F32, .*Q6_K"),
    (lambda: dequantize(bytes(19), "Q4_1", (32,)), ValueError, "needs 20 bytes for every 32 weights of Q4_1, got 19"),
    (lambda: dequantize(bytes(20), "Q4_1", (31,)), ValueError, r"for shape \(31,\)"),
    (lambda: dequantize(bytes(20), "Q4_1", (-1, -32)), ValueError, r"for shape \(-1, -32\)"),
    (lambda: dequantize(bytes(4), "F32", (2,)), ValueError, "4 bytes for every 1 weights of F32, got 4 for shape"),
)


# Small files, written here from the specification


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def typed(value):
    """A metadata value with its type number before it."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<IQ", 10, value) if value >= 0 else struct.pack("<Iq", 11, value)
    if isinstance(value, float):
        return struct.pack("<Id", 12, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    inner = [typed(element) for element in value] or [struct.pack("<I", 8)]
    return struct.pack("<I", 9) + inner[0][:4] + struct.pack("<Q", len(value)) + b"".join(e[4:] for e in inner)


def build(metadata=(), tensors=(), version=3, alignment=32):
    """The bytes of a GGUF file. tensors: (name, shape with rows first, type number, bytes)."""
    metadata = dict(metadata)
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    head += b"".join(text(key) + typed(value) for key, value in metadata.items())
    data = b""
    for name, shape, kind, content in tensors:
        data += bytes(-len(data) % alignment)
        axes = struct.pack(f"<{len(shape)}Q", *shape[::-1])
        head += text(name) + struct.pack("<I", len(shape)) + axes + struct.pack("<IQ", kind, len(data))
        data += content
    return head + bytes(-len(head) % alignment) + data


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "model.gguf"
        path.write_bytes(content)
        return path

    return write


METADATA = {
    "name": "ä small model", "layers": 30, "shift": -7, "largest": 2**64 - 1, "smallest": -(2**63), "epsilon": 1e-5,
    "tied": True, "empty": [], "tokens": ["Ġthe", "", "naïve"], "ids": [3, 1, 2], "scores": [0.5, -1.0],
    "nested": [[1, 2], [3]],
}  # fmt: skip


@pytest.mark.parametrize("version", [2, 3])
def test_metadata_come_back_as_python_values(write, version):
    file = GGUF(write(build(METADATA, version=version)))
    assert file.metadata == METADATA
    assert len(file) == 0


@pytest.mark.parametrize("alignment", [32, 64, 8])
def test_tensors_come_back_by_name_with_rows_first(write, alignment):
    rng = np.random.default_rng(2)
    matrix, vector = rng.normal(size=(2, 3)).astype("<f4"), rng.normal(size=5).astype("<f2")
    blocks = random_blocks("Q4_1", 4, rng)
    tensors = [("m", (2, 3), 0, matrix.tobytes()), ("v", (5,), 1, vector.tobytes())]
    tensors += [("q", (2, 64), 3, blocks.tobytes())]
    file = GGUF(write(build({"general.alignment": alignment}, tensors, alignment=alignment)))
    assert list(file) == ["m", "v", "q"]
    assert [info[:2] for info in file.tensors.values()] == [((2, 3), "F32"), ((5,), "F16"), ((2, 64), "Q4_1")]
    file["m"][0] = 9  # a copy
    assert np.array_equal(file["m"], matrix)
    assert np.array_equal(file["v"], vector.astype(np.float32))
    assert np.array_equal(file["q"], dequantize(blocks.ravel(), "Q4_1", (2, 64)))


@pytest.mark.parametrize("kind", NUMBERS)
def test_each_quantised_type_is_known_by_its_number(write, kind):
    blocks = random_blocks(kind, 2, np.random.default_rng(3))
    file = GGUF(write(build((), [("w", (2, LAYOUT[kind][0]), NUMBERS[kind], blocks.tobytes())])))
    assert file.tensors["w"].type == kind
    assert np.array_equal(file["w"], dequantize(blocks.ravel(), kind, (2, LAYOUT[kind][0])))


def test_an_unknown_name_is_met_with_the_nearest(write):
    file = GGUF(write(build((), [("blk.0.attn_q.weight", (1,), 0, bytes(4))])))
    with pytest.raises(KeyError, match=r"did you mean blk\.0\.attn_q\.weight"):
        file["blk.0.attn_p.weight"]


def test_a_file_cut_off_anywhere_is_refused_in_words(write):
    content = build(METADATA, [("w", (3, 32), 3, bytes(60)), ("v", (2,), 0, bytes(8))])
    for end in range(len(content)):
        with pytest.raises(ValueError, match="is not a whole GGUF file: "):
            GGUF(write(content[:end]))


WHOLE = build({"a": 1}, [("w", (2,), 0, bytes(8))])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a whole GGUF file: .*empty"),
        (b"GGML" + WHOLE[4:], "begins with b'GGML'"),
        (b"GGUF" + struct.pack("<I", 1) + WHOLE[8:], "this is version 1"),
        (b"GGUF" + struct.pack(">I", 3) + WHOLE[8:], "big-endian"),
        (build({"a": 1}).replace(struct.pack("<I", 10), struct.pack("<I", 77)), "a value is of type number 77"),
        (build((), [("w", (2,), 4, bytes(8))]), "w is of type number 4"),
        (build((), [("w", (2, 31), 3, bytes(40))]), r"rows of w \(2, 31\) are no multiple of the 32"),
        (build((), [("w", (2,), 0, bytes(8)), ("w", (2,), 0, bytes(8))]), "'w' occurs twice"),
        (build((), [("w", (1,) * 9, 0, bytes(8))]), "w has 9 axes"),
        (build({"general.alignment": 0}), "alignment of 0"),
        (build({"general.alignment": "x"}), "alignment of 'x'"),
        (build((), [("w", (2**62, 2**62), 0, bytes(8))]), "w ends at byte"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60) + bytes(64), "twice"),
        (build({"a": "é"}).replace("é".encode(), b"\xff\xfe"), "utf-8"),
        (build({"a": ["b"]}).replace(text("b"), struct.pack("<Q", 2**63) + b"b"), "9,223,372,036,854,775,808 more are"),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_a_file_that_contradicts_itself_is_refused_in_words(write, content, message):
    with pytest.raises(ValueError, match=message):
        GGUF(write(content))


@given(st.data())
def test_no_damage_to_the_header_makes_anything_but_a_clear_error(tmp_path_factory, data):
    content = bytearray(build({"general.alignment": 32, "t": ["a", "b"], "n": [[1]]}, [("w", (1, 32), 3, bytes(20))]))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    path.write_bytes(content)
    problem = ""
    try:
        file = GGUF(path)
        assert all(file[name].shape == info.shape for name, info in file.tensors.items())
    except ValueError as error:
        problem = str(error)
    assert not problem or "is not a whole GGUF file" in problem or "does not support" in problem


# SmolLM2's file


def test_a_tensor_of_smollm2_is_dequantised_with_little_beside_it(needs):
    file = GGUF(next(needs("smollm2").glob("*.gguf")))
    tracemalloc.start()
    try:
        size = file["token_embd.weight"].nbytes
        assert size < tracemalloc.get_traced_memory()[1] < 1.05 * size
    finally:
        tracemalloc.stop()
