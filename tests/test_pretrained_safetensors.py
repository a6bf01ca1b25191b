"""safetensors: what is written comes back bit by bit, and a file that is not whole is refused in words."""

import json
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mathllm.pretrained import safetensors

DTYPES = ["f8", "f4", "f2", "c8", "?", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def content(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def one(kind, shape, data):
    return content({"x": {"dtype": kind, "shape": shape, "data_offsets": [0, len(data)]}}, data)


# There and back


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=6),
        st.sampled_from(DTYPES).flatmap(lambda d: arrays.arrays(d, arrays.array_shapes(min_dims=0, min_side=0))),
        max_size=4,
    )
)
def test_arrays_of_every_dtype_and_shape_come_back_bit_by_bit(tmp_path_factory, tensors):
    path = tmp_path_factory.mktemp("st") / "x.safetensors"
    safetensors.save(path, tensors)
    found = safetensors.load(path)
    assert set(found) == set(tensors)
    for name, array in tensors.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


def test_turned_strided_and_big_endian_arrays_are_written_in_reading_order(path):
    matrix = np.arange(6.0).reshape(2, 3)
    tensors = {"turned": matrix.T, "strided": matrix[:, ::2], "big": matrix.astype(">f4"), "one": matrix[0, 1]}
    safetensors.save(path, tensors)
    found = safetensors.load(path)
    assert all(np.array_equal(found[name], array) for name, array in tensors.items())
    assert found["big"].dtype == np.dtype("<f4")


def test_metadata_come_back(path):
    safetensors.save(path, {"x": np.ones(2)}, {"format": "pt", "ä": ""})
    assert safetensors.metadata(path) == {"format": "pt", "ä": ""}
    assert list(safetensors.load(path)) == ["x"]
    safetensors.save(path, {})
    assert safetensors.metadata(path) == {}
    assert safetensors.load(path) == {}


def test_arrays_are_views_of_the_mapped_file_that_cannot_be_written(path):
    safetensors.save(path, {"x": np.arange(3.0)})
    x = safetensors.load(path)["x"]
    base = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1


def test_the_bytes_are_those_of_the_format(path):
    safetensors.save(path, {"b": np.array([1], np.uint8), "a": np.array([2.0], np.float32)})
    whole = path.read_bytes()
    (length,) = struct.unpack_from("<Q", whole)
    header = json.loads(whole[8 : 8 + length])
    assert length % 8 == 0
    assert header == {
        "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "b": {"dtype": "U8", "shape": [1], "data_offsets": [4, 5]},
    }
    assert whole[8 + length :] == struct.pack("<f", 2.0) + b"\1"


def test_an_array_that_does_not_begin_at_a_multiple_of_its_size_is_read(path):
    header = {
        "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
        "b": {"dtype": "F64", "shape": [1], "data_offsets": [1, 9]},
    }
    path.write_bytes(content(header, b"\7" + struct.pack("<d", 0.5)))
    assert safetensors.load(path)["b"].tolist() == [0.5]


# Types that NumPy does not have


@given(st.integers(0, 0xFFFF))
def test_bfloat16_is_the_upper_half_of_a_float32(tmp_path_factory, bits):
    path = tmp_path_factory.mktemp("st") / "x.safetensors"
    path.write_bytes(one("BF16", [1], struct.pack("<H", bits)))
    found = safetensors.load(path)["x"]
    assert found.dtype == np.float32
    assert found.view(np.uint32)[0] == bits << 16


def small_float(bits, exponents, fractions, bias):
    """The number of an 8-bit float by its definition, infinities and no-numbers aside."""
    sign, exponent, fraction = bits >> 7, bits >> fractions & 2**exponents - 1, bits & 2**fractions - 1
    size = ((exponent > 0) + fraction / 2**fractions) * 2.0 ** (max(exponent, 1) - bias)
    return -size if sign else size


def test_8_bit_floats_become_the_numbers_of_their_definition(path):
    path.write_bytes(one("F8_E4M3", [256], bytes(range(256))))
    found = safetensors.load(path)["x"]
    assert np.flatnonzero(np.isnan(found)).tolist() == [127, 255]
    rest = [i for i in range(256) if i % 128 != 127]
    assert found[rest].tolist() == [small_float(i, 4, 3, 7) for i in rest]
    path.write_bytes(one("F8_E5M2", [256], bytes(range(256))))
    found = safetensors.load(path)["x"]
    rest = [i for i in range(256) if i % 128 < 124]
    assert found[rest].tolist() == [small_float(i, 5, 2, 15) for i in rest]
    assert np.isinf(found[[124, 252]]).all()
    assert np.isnan(found[[125, 126, 127, 253, 254, 255]]).all()


# Files that are not whole


def test_a_file_cut_off_anywhere_is_refused_in_words(path):
    safetensors.save(path, {"x": np.arange(3.0), "y": np.ones((2, 2), np.float32)}, {"a": "b"})
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"model\.safetensors is not a whole safetensors file: "):
            safetensors.load(path)


X = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}


@pytest.mark.parametrize(
    ("whole", "message"),
    [
        (content({"x": X}, b"123"), "its arrays end at byte 70, and the file at 71"),
        (content({"x": X, "y": X}, b"12"), "'y' begins at byte 0, where 2 was due"),
        (content({"x": X | {"data_offsets": [1, 3]}}, b"123"), "'x' begins at byte 1, where 0 was due"),
        (content({"x": X | {"shape": [3]}}, b"12"), r"shape \(3,\) and type U8 does not fill the bytes \[0, 2\]"),
        (content({"x": X | {"shape": [-2]}}, b"12"), "no list of natural numbers"),
        (content({"x": X | {"shape": [True]}}, b"12"), "no list of natural numbers"),
        (content({"x": X | {"shape": 2}}, b"12"), "no list of natural numbers"),
        (content({"x": X | {"data_offsets": [2]}}, b"12"), "does not fill"),
        (content({"x": X | {"dtype": "F4"}}, b"12"), "type 'F4', which is not known"),
        (content({"x": X | {"dtype": ["U8"]}}, b"12"), "which is not known"),
        (content({"x": [1]}), "lacks dtype"),
        (content({"x": {"dtype": "U8"}}), "lacks dtype"),
        (content([1, 2]), "not a table"),
        (content({"__metadata__": {"a": 1}}), "not a table"),
        (content({"__metadata__": "a"}), "not a table"),
        (content(b"{nonsense"), "no JSON"),
        (content(b"\xff\xfe\xff"), "no JSON"),
        (content(b"[" * 100_000), "no JSON"),
        (content(b'{"x": 1, "x": 2}'), "a name occurs twice"),
        (struct.pack("<Q", 2**63) + b"{}", "header should have 9,223,372,036,854,775,808 bytes, and the file has 10"),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_a_file_that_contradicts_itself_is_refused_in_words(path, whole, message):
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=message):
        safetensors.load(path)


@given(st.data())
def test_no_damage_makes_anything_but_a_clear_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("st") / "x.safetensors"
    safetensors.save(path, {"x": np.arange(3, dtype=np.int16), "y": np.float32(1)}, {"a": "b"})
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole)
    problem = ""
    try:
        assert all(isinstance(array, np.ndarray) for array in safetensors.load(path).values())
    except ValueError as error:
        problem = str(error)
    assert not problem or "is not a whole safetensors file" in problem


# Writing


@pytest.mark.parametrize(
    ("tensors", "metadata", "message"),
    [
        ({"x": np.array(["a"])}, None, "cannot write 'x' of dtype <U1"),
        ({"x": np.ones(1, np.complex128)}, None, "cannot write 'x' of dtype complex128"),
        ({"__metadata__": np.ones(1)}, None, "cannot write '__metadata__'"),
        ({1: np.ones(1)}, None, "cannot write 1"),
        ({}, {"step": 3}, "from text to text only"),
    ],
)
def test_what_the_format_does_not_have_is_refused_and_no_file_appears(path, tensors, metadata, message):
    with pytest.raises(ValueError, match=message):
        safetensors.save(path, tensors, metadata)
    assert list(path.parent.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    safetensors.save(path, {"x": np.ones(2)})
    before = path.read_bytes()

    def no_space(handle):
        raise OSError("No space left on device")

    monkeypatch.setattr(safetensors.os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        safetensors.save(path, {"x": np.zeros(2)})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_program_killed_while_it_writes_leaves_the_old_file_whole(path):
    safetensors.save(path, {"x": np.ones(2)})
    program = textwrap.dedent(f"""
        import os, signal
        import numpy as np
        from mathllm.pretrained import safetensors
        os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
        safetensors.save({str(path)!r}, {{"x": np.zeros(1000)}})
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert done.returncode < 0
    assert safetensors.load(path)["x"].tolist() == [1, 1]


def test_a_file_in_use_can_be_replaced_under_its_readers(path):
    safetensors.save(path, {"x": np.ones(2)})
    old = safetensors.load(path)["x"]
    safetensors.save(path, {"x": np.zeros(2)})
    assert old.tolist() == [1, 1]
    assert safetensors.load(path)["x"].tolist() == [0, 0]


def test_a_written_file_can_be_read_by_whom_other_files_can(path):
    safetensors.save(path, {})
    (path.parent / "other").touch()
    assert path.stat().st_mode == (path.parent / "other").stat().st_mode


# MiniLM's file


def test_the_file_of_minilm_has_its_known_arrays(needs):
    file = needs("minilm") / "model" / "model.safetensors"
    tensors = safetensors.load(file)
    assert tensors["embeddings.word_embeddings.weight"].shape == (30522, 384)
    assert {str(array.dtype) for array in tensors.values()} == {"float32", "int64"}
    assert safetensors.metadata(file) == {"format": "pt"}
    assert tensors["embeddings.position_ids"].tolist() == [list(range(512))]
