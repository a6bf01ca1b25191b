"""What may cross from a learner's process into the grader: plain data, bit by bit, and nothing else."""

import math
from unittest.mock import ANY

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from mathllm_exercises import codec

SCALARS = st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats() | st.text(max_size=20)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)
ARRAYS = arrays.arrays(
    st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.int8, np.uint64, np.bool_]),
    arrays.array_shapes(min_dims=0, max_side=4),
)


def across(value):
    return codec.decode(codec.loads(codec.dumps(codec.encode(value))))


def same(a, b):
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


@given(PLAIN)
def test_plain_data_arrives_as_it_left(value):
    try:
        encoded = codec.encode(value)
    except codec.CodecError:
        return  # nested too deep
    assert same(value, codec.decode(codec.loads(codec.dumps(encoded))))


@given(ARRAYS)
def test_arrays_arrive_with_their_dtype_shape_and_every_bit(array):
    arrived = across(array)
    assert arrived.dtype == array.dtype
    assert arrived.shape == array.shape
    np.testing.assert_array_equal(arrived, array)


class Text(str):
    __slots__ = ()

    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.mark.parametrize(
    "value",
    [ANY, object(), len, {1, 2}, b"bytes", 1j, 2**70, np.array([object()]), np.zeros(300_000)],
)
def test_what_is_not_plain_data_does_not_leave(value):
    with pytest.raises(codec.CodecError):
        codec.encode(value)


@pytest.mark.parametrize(
    ("value", "kind"), [(np.float32(0.1), np.float32), (np.int64(3), np.int64), (..., type(...)), (Text("a"), str)]
)
def test_scalars_keep_their_type_ellipsis_stays_and_a_string_in_disguise_arrives_as_a_string(value, kind):
    assert type(across(value)) is kind


@pytest.mark.parametrize(
    "text",
    [
        "", "null and more", "NaN", '["float", 1.5]', '["float", "NaNcy"]', '["array", "object", [1], ["a"]]',
        '["array", "float64", [2], ["0x1p+0"]]', '["array", "float64", [-1], []]', '["array", "int8", [1], [1000]]',
        '["array", "float64", [1e9], []]', '["array", "bool", [1], [2]]', '["scalar", "float64", [1], ["0x1p+0"]]',
        '["dict", [["a"], 1]]', '["dict", 3]', '["set", 1]', "[]", "[[]]", "{}", "1.5", "1" * 30, '["ellipsis", 1]',
        "[" * 100_000, '["list", ' * 20 + "1" + "]" * 20, " " * 5_000_000,
    ],
)  # fmt: skip
def test_forged_text_is_refused_whatever_it_is(text):
    with pytest.raises(codec.CodecError):
        codec.decode(codec.loads(text))
