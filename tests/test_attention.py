"""Chapter 10: who looks at whom, in how many heads, from which position, and at what cost."""
# ruff: noqa: I001 (the names of the chapter are one paragraph)

import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refusing

import mathllm as ml
from mathllm.attention import (
    RotaryScaling, alibi_bias, attention, causal_mask, flash_attention, linear_attention, multi_head_attention,
    padding_mask, positive_features, relative_buckets, rotary_angles, rotate, sliding_window_mask, split_heads,
)  # fmt: skip

rng = np.random.default_rng(10)
sizes, seeds = st.integers(1, 7), st.integers(0, 2**32 - 1)


@given(sizes, sizes, sizes, st.integers(1, 9), st.booleans(), seeds)
def test_tiles_of_any_size_give_the_same_attention_and_its_gradients(queries, more, width, block, causal, seed):
    draw, keys = np.random.default_rng(seed), queries + more - 1
    q, k, v = (draw.normal(size=(2, *size)) for size in ((queries, width), (keys, width), (keys, 3)))
    mask = causal_mask(queries, keys) if causal else None
    tiled, pullback = ml.vjp(partial(flash_attention, causal=causal, block_size=block), q, k, v)
    plain, expected = ml.vjp(lambda q, k, v: attention(q, k, v, mask), q, k, v)
    dy = draw.normal(size=plain.shape)
    for ours, theirs in zip([tiled, *pullback(dy)], [plain, *expected(dy)], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@given(sizes, sizes, st.booleans(), seeds)
def test_linear_attention_is_the_same_token_by_token(length, width, shifted, seed):
    q, k, v = np.random.default_rng(seed).normal(size=(3, length, width)) + 3 * shifted
    queries, keys = positive_features(q), positive_features(k)
    state, total = np.cumsum(keys[:, :, None] * v[:, None], axis=0), np.cumsum(keys, axis=0)
    recurrent = (queries[:, None] @ state)[:, 0] / np.vecdot(queries, total)[:, None]
    np.testing.assert_allclose(recurrent, linear_attention(q, k, v, causal=True), atol=1e-9)
    np.testing.assert_allclose(recurrent[-1], linear_attention(q, k, v)[-1], atol=1e-9)


def test_linear_attention_takes_integers():
    q, k, v = np.random.default_rng(0).integers(-3, 3, size=(3, 4, 2))
    np.testing.assert_array_equal(linear_attention(q, k, v), linear_attention(q * 1.0, k * 1.0, v * 1.0))


@given(sizes, st.integers(1, 4), st.sampled_from(["half", "adjacent"]), st.integers(0, 500), seeds)
def test_rotation_keeps_lengths_and_only_the_distance_counts(length, pairs, pairing, shift, seed):
    q, k = np.random.default_rng(seed).normal(size=(2, length, 2 * pairs))
    here, later = (rotary_angles(np.arange(length) + start, 2 * pairs) for start in (0, shift))
    turned = rotate(q, angles=here, pairing=pairing)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(q, axis=-1))
    scores = [rotate(q, angles=a, pairing=pairing) @ rotate(k, angles=a, pairing=pairing).T for a in (here, later)]
    np.testing.assert_allclose(*scores, atol=1e-9)


def test_a_causal_mask_for_the_last_queries_is_the_end_of_the_whole_mask():
    assert np.array_equal(causal_mask(2, 5), causal_mask(5)[3:])
    assert np.array_equal(sliding_window_mask(2, 3, 5), sliding_window_mask(5, 3)[3:])
    assert np.array_equal(sliding_window_mask(5, 5), causal_mask(5))


def test_flash_attention_of_float16_does_not_overflow_where_attention_does_not():
    x = np.full((2, 64), 40, np.float16)  # the products add up to 102,400
    assert flash_attention(x, x, x).dtype == np.float16
    np.testing.assert_array_equal(flash_attention(x, x, x), attention(x, x, x))


def test_flash_attention_needs_memory_for_the_sequence_and_not_for_its_square():
    def peak(function, length):
        x = np.ones((length, 8), np.float32)
        tracemalloc.start()
        function(x, x, x)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    flash = [peak(flash_attention, length) for length in (1024, 2048)]
    assert flash[1] < 2.5 * flash[0]
    assert flash[1] < peak(attention, 2048) / 20


def projections(width, heads, kv_heads, head_width):
    sizes = {"query": (width, heads), "key": (width, kv_heads), "value": (width, kv_heads)}
    params = {name: rng.normal(size=(d, h * head_width)) for name, (d, h) in sizes.items()}
    return params | {"output": rng.normal(size=(heads * head_width, width))}


@pytest.mark.parametrize("kv_heads", [1, 2, 8])
def test_grouped_queries_are_many_heads_with_repeated_keys(kv_heads):
    x, params = rng.normal(size=(2, 5, 6)), projections(6, 8, kv_heads, 3)
    repeated = params | {
        name: np.repeat(params[name].reshape(6, kv_heads, 3), 8 // kv_heads, axis=1).reshape(6, 24)
        for name in ("key", "value")
    }
    mask, bias = padding_mask([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]), alibi_bias(8, 5)
    grouped = multi_head_attention(x, params, heads=8, kv_heads=kv_heads, mask=mask, bias=bias)
    full = multi_head_attention(x, repeated, heads=8, mask=mask, bias=bias)
    np.testing.assert_allclose(grouped, full, atol=1e-12)


def test_alibi_counts_the_distance_on_both_sides():
    bias = alibi_bias(2, 4)
    slopes = [1 / 16, 1 / 256]
    for head, query, key in np.ndindex(2, 4, 4):
        assert bias[head, query, key] == -slopes[head] * abs(query - key)
    assert np.array_equal(alibi_bias(2, 2, 4), bias[:, 2:])  # the last two queries, the first two keys in a cache


def test_scaled_angles_of_a_long_context_fit_into_the_trained_range():
    trained, factor = 128, 4
    plain, far = rotary_angles([trained], 16)[0], rotary_angles([trained * factor], 16)[0]
    linear, ntk, yarn = (
        rotary_angles([trained * factor], 16, scaling=RotaryScaling(kind, factor, trained))[0]
        for kind in ("linear", "ntk", "yarn")
    )
    np.testing.assert_allclose(linear, plain)
    for angles in (ntk, yarn):
        np.testing.assert_allclose(angles[-1], plain[-1])  # the slowest pair is stretched by the whole factor
        np.testing.assert_allclose(angles[0], far[0])  # the fastest one not at all
    assert np.all(np.diff(yarn / far) <= 1e-12)  # from 1 to 1/4, pair by pair


def test_an_encoder_has_half_of_the_classes_for_what_comes_later_and_the_last_queries_have_the_last_rows():
    both, back = relative_buckets(40, causal=False), relative_buckets(40, buckets=16)
    np.testing.assert_array_equal(np.tril(both), back)
    np.testing.assert_array_equal(np.triu(both, 1), np.triu(16 + back.T, 1))
    np.testing.assert_array_equal(relative_buckets(2, 40, causal=False), both[-2:])


LONG = RotaryScaling("longrope", trained=8, short=(1, 2, 3), long=(2, 4, 8))

test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: attention(*np.ones((3, 2, 3)), np.ones((2, 2))), TypeError, "booleans"),
    (lambda: causal_mask(3, 2), ml.ShapeError, "got 3 and 2"),
    (lambda: causal_mask(0), ml.ShapeError, "got 0 and 0"),
    (lambda: linear_attention(*np.full((3, 2, 3), np.nan)), ValueError, "got nan"),
    (lambda: split_heads(np.ones((2, 10)), 3), ml.ShapeError, "into 3 heads"),
    (lambda: multi_head_attention(np.ones((2, 4)), {}, heads=3, kv_heads=2), ml.ShapeError, "share 2"),
    (lambda: rotate(np.ones((2, 4)), angles=np.ones((3, 2))), ml.ShapeError, r"\(3, 2\)"),
    (lambda: rotate(np.ones((2, 4)), angles=np.ones((2, 2)), pairing="other"), ValueError, "half"),
    (lambda: rotary_angles([0], 3), ValueError, "even, got 3"),
    (lambda: RotaryScaling("yarm"), ValueError, "did you mean yarn"),
    (lambda: RotaryScaling("ntk", 0.5), ValueError, r"factor in \[1, ∞\), got 0.5"),
    (lambda: RotaryScaling("llama"), ValueError, "did you mean llama3"),
    (lambda: RotaryScaling("linear", turns=(1, 8)), ValueError, "for yarn and llama3, not for linear"),
    (lambda: RotaryScaling("llama3", attention_factor=1.5), ValueError, "for yarn and longrope, not for llama3"),
    (lambda: RotaryScaling("longrope", short=(1,), long=(2,)).score_factor, ValueError, "length of the training"),
    (lambda: RotaryScaling("longrope", short=(1, 2)), ValueError, r"short and long, got \(1, 2\) and None"),
    (lambda: rotary_angles([1], 4, scaling=LONG), ml.ShapeError, "has 2 pairs, longrope numbers for 3"),
    (lambda: RotaryScaling("yarn", turns=(32, 1)), ValueError, r"smaller one first, got \(32, 1\)"),
    (lambda: RotaryScaling("yarn", attention_factor=0.0), ValueError, r"attention_factor in \(0, ∞\)"),
    (lambda: alibi_bias(3, 2), ValueError, "power of two"),
    (lambda: relative_buckets(3, buckets=3, causal=False), ValueError, "into 3 buckets"),
    (lambda: relative_buckets(3, farthest=16), ValueError, "distances up to 16 into 32 buckets"),
)
