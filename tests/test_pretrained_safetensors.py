"""safetensors: what is written comes back bit by bit, and a file that is not whole is refused in words."""

import json
import struct
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mathllm.pretrained.files import load_tensors, save_tensors
from mathllm.pretrained.huggingface import save_pretrained
from mathllm.transformer import Transformer, gpt2_config

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
    save_tensors(path, tensors)
    found = load_tensors(path)
    assert set(found) == set(tensors)
    for name, array in tensors.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


def test_turned_strided_and_big_endian_arrays_are_written_in_reading_order(path):
    matrix = np.arange(6.0).reshape(2, 3)
    tensors = {"turned": matrix.T, "strided": matrix[:, ::2], "big": matrix.astype(">f4"), "one": matrix[0, 1]}
    save_tensors(path, tensors)
    found = load_tensors(path)
    assert all(np.array_equal(found[name], array) for name, array in tensors.items())
    assert found["big"].dtype == np.dtype("<f4")


def test_metadata_are_stored(path):
    save_tensors(path, {"x": np.ones(2)}, {"format": "pt", "ä": ""})
    with safetensors.safe_open(path, "numpy") as file:
        assert file.metadata() == {"format": "pt", "ä": ""}
    assert list(load_tensors(path)) == ["x"]
    save_tensors(path, {})
    assert load_tensors(path) == {}


def test_arrays_are_views_of_the_mapped_file_that_cannot_be_written(path):
    save_tensors(path, {"x": np.arange(3.0)})
    x = load_tensors(path)["x"]
    base = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1


def test_an_array_that_does_not_begin_at_a_multiple_of_its_size_is_read(path):
    header = {
        "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
        "b": {"dtype": "F64", "shape": [1], "data_offsets": [1, 9]},
    }
    path.write_bytes(content(header, b"\7" + struct.pack("<d", 0.5)))
    assert load_tensors(path)["b"].tolist() == [0.5]


# Types that NumPy does not have


@given(st.integers(0, 0xFFFF))
def test_bfloat16_is_the_upper_half_of_a_float32(tmp_path_factory, bits):
    path = tmp_path_factory.mktemp("st") / "x.safetensors"
    path.write_bytes(one("BF16", [1], struct.pack("<H", bits)))
    found = load_tensors(path)["x"]
    assert found.dtype == np.float32
    assert found.view(np.uint32)[0] == bits << 16


# Files that are not whole


def test_a_file_cut_off_anywhere_is_refused_in_words(path):
    save_tensors(path, {"x": np.arange(3.0), "y": np.ones((2, 2), np.float32)}, {"a": "b"})
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"model\.safetensors is not a whole safetensors file: "):
            load_tensors(path)


X = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}


def test_a_type_of_the_format_that_is_not_known_here_is_named(path):
    path.write_bytes(content({"x": X | {"dtype": "F4", "shape": [4]}}, b"12"))
    with pytest.raises(ValueError, match=r"does not know the type F4 of 'x' in .*model\.safetensors"):
        load_tensors(path)


@given(st.data())
def test_no_damage_makes_anything_but_a_clear_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("st") / "x.safetensors"
    save_tensors(path, {"x": np.arange(3, dtype=np.int16), "y": np.float32(1)}, {"a": "b"})
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole)
    problem = ""
    try:
        assert all(isinstance(array, np.ndarray) for array in load_tensors(path).values())
    except ValueError as error:
        problem = str(error)
    assert not problem or "is not a whole safetensors file" in problem


# Writing


@pytest.mark.parametrize(
    ("tensors", "metadata", "message"),
    [
        ({"x": np.array(["a"])}, None, "cannot write .*str32"),
        ({"x": np.ones(1, np.complex128)}, None, "cannot write .*complex128"),
        ({"__metadata__": np.ones(1)}, None, "cannot write .*__metadata__"),
        ({1: np.ones(1)}, None, "cannot write .*'int' object is not"),
        ({}, {"step": 3}, "cannot write .*'int' object is not"),
    ],
)
def test_what_the_format_does_not_have_is_refused_and_no_file_appears(path, tensors, metadata, message):
    with pytest.raises(ValueError, match=message):
        save_tensors(path, tensors, metadata)
    assert list(path.parent.iterdir()) == []


def test_a_model_whose_weights_cannot_be_written_leaves_the_old_one_whole(tmp_path, monkeypatch):
    config = gpt2_config(vocabulary=5, width=4, layers=1, heads=2, context=3)
    params = Transformer(config).init(np.random.default_rng(0))
    save_pretrained(tmp_path, config, params)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def no_space(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(safetensors.numpy, "save_file", no_space)
    deeper = replace(config, layers=2)
    with pytest.raises(OSError, match="No space"):
        save_pretrained(tmp_path, deeper, Transformer(deeper).init(np.random.default_rng(0)))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_file_in_use_can_be_replaced_under_its_readers(path):
    save_tensors(path, {"x": np.ones(2)})
    old = load_tensors(path)["x"]
    save_tensors(path, {"x": np.zeros(2)})
    assert old.tolist() == [1, 1]
    assert load_tensors(path)["x"].tolist() == [0, 0]


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_a_written_file_can_be_read_by_whom_other_files_can(path, umask):
    program = f"""
import os
os.umask({umask})
os.umask = None  # a library changes nothing for the whole process
from mathllm.pretrained.files import save_tensors
save_tensors({str(path)!r}, {{}})
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_without_the_library_the_error_says_how_to_install_it(path, monkeypatch):
    save_tensors(path, {})
    monkeypatch.setitem(sys.modules, "safetensors", None)
    for use in (lambda: load_tensors(path), lambda: save_tensors(path, {})):
        with pytest.raises(ImportError, match=r"pip install 'mathllm\[pretrained\]'"):
            use()
