"""Chapter 10: who looks at whom, in how many heads, from which position, and at what cost."""

import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mathllm as ml
from mathllm.attention import (
    RotaryScaling,
    alibi_bias,
    attention,
    causal_mask,
    flash_attention,
    linear_attention,
    linear_attention_recurrent,
    multi_head_attention,
    padding_mask,
    relative_buckets,
    rotary_angles,
    rotate,
    sinusoidal_positions,
    sliding_window_mask,
    split_heads,
)

TOLERANCE = 1e-6  # central differences in float64 are good to about 1e-10; a wrong formula is off by percents
rng = np.random.default_rng(10)


# ------------------------------------------------------------------------------------------------------ properties


sizes = st.integers(1, 7)


@given(sizes, sizes, sizes, st.integers(1, 9), st.booleans(), st.integers(0, 2**32 - 1))
def test_tiles_of_any_size_give_the_same_attention(queries, more, width, block, causal, seed):
    draw = np.random.default_rng(seed)
    keys = queries + more - 1
    q, k, v = draw.normal(size=(queries, width)), draw.normal(size=(keys, width)), draw.normal(size=(keys, 3))
    tiled = flash_attention(q, k, v, causal=causal, block_size=block)
    np.testing.assert_allclose(tiled, attention(q, k, v, causal_mask(queries, keys) if causal else None), atol=1e-12)


@given(sizes, sizes, st.booleans(), st.integers(0, 2**32 - 1))
def test_linear_attention_is_the_same_token_by_token(length, width, shifted, seed):
    q, k, v = np.random.default_rng(seed).normal(size=(3, length, width)) + 3 * shifted
    recurrent = linear_attention_recurrent(q, k, v)
    np.testing.assert_allclose(recurrent, linear_attention(q, k, v, causal=True), atol=1e-9)
    np.testing.assert_allclose(recurrent[-1], linear_attention(q, k, v)[-1], atol=1e-9)


@given(sizes, st.integers(1, 4), st.sampled_from(["half", "adjacent"]), st.integers(0, 500), st.integers(0, 2**32 - 1))
def test_rotation_keeps_lengths_and_only_the_distance_counts(length, pairs, pairing, shift, seed):
    q, k = np.random.default_rng(seed).normal(size=(2, length, 2 * pairs))
    here, later = (rotary_angles(np.arange(length) + start, 2 * pairs) for start in (0, shift))
    turned = rotate(q, angles=here, pairing=pairing)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(q, axis=-1))
    scores = [rotate(q, angles=a, pairing=pairing) @ rotate(k, angles=a, pairing=pairing).T for a in (here, later)]
    np.testing.assert_allclose(*scores, atol=1e-9)


def test_without_positions_attention_does_not_know_the_order():
    x = rng.normal(size=(6, 4))
    order = rng.permutation(6)
    np.testing.assert_allclose(attention(x[order], x[order], x[order]), attention(x, x, x)[order], atol=1e-12)


def test_a_causal_mask_for_the_last_queries_is_the_end_of_the_whole_mask():
    assert np.array_equal(causal_mask(2, 5), causal_mask(5)[3:])
    assert np.array_equal(sliding_window_mask(2, 3, 5), sliding_window_mask(5, 3)[3:])
    assert np.array_equal(sliding_window_mask(5, 5), causal_mask(5))
    assert sliding_window_mask(4, 2).astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]


def test_a_row_that_may_see_nothing_gives_zeros_and_no_gradient():
    q, k, v = rng.normal(size=(3, 2, 4))
    mask = np.array([[False, False], [True, False]])
    assert not np.any(attention(q, k, v, mask)[0])
    gradient = ml.grad(lambda q: attention(q, k, v, mask).sum())(q)
    assert np.all(np.isfinite(gradient))
    assert not np.any(gradient[0])


def test_padding_is_seen_by_nobody():
    q, k, v = rng.normal(size=(3, 1, 2, 4, 8))  # (B, H, T, K)
    mask = padding_mask([[1, 1, 1, 0]])
    np.testing.assert_allclose(attention(q, k, v, mask), attention(q, k[..., :3, :], v[..., :3, :]))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block_size", [1, 3, 4, 64])
def test_flash_attention_is_the_same_function(causal, block_size):
    q, k, v = rng.normal(size=(2, 2, 5, 4)), rng.normal(size=(2, 2, 7, 4)), rng.normal(size=(2, 2, 7, 3))
    mask = causal_mask(5, 7) if causal else None
    tiled = lambda q, k, v: flash_attention(q, k, v, causal=causal, block_size=block_size)  # noqa: E731
    np.testing.assert_allclose(tiled(q, k, v), attention(q, k, v, mask), atol=1e-12)
    dy = rng.normal(size=(2, 2, 5, 3))
    plain = ml.vjp(lambda q, k, v: attention(q, k, v, mask), q, k, v)[1](dy)
    for ours, theirs in zip(ml.vjp(tiled, q, k, v)[1](dy), plain, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


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


# ------------------------------------------------------------------------------------------------------------- heads


def projections(width, heads, kv_heads, head_width):
    sizes = {"query": (width, heads), "key": (width, kv_heads), "value": (width, kv_heads)}
    params = {name: rng.normal(size=(d, h * head_width)) for name, (d, h) in sizes.items()}
    return params | {"output": rng.normal(size=(heads * head_width, width))}


def test_heads_are_attentions_side_by_side():
    x, params = rng.normal(size=(5, 6)), projections(6, 3, 3, 2)
    one_by_one = [
        attention(*(x @ params[name][:, 2 * h : 2 * h + 2] for name in ("query", "key", "value")), causal_mask(5))
        for h in range(3)
    ]
    expected = np.concatenate(one_by_one, axis=-1) @ params["output"]
    np.testing.assert_allclose(multi_head_attention(x, params, heads=3, mask=causal_mask(5)), expected)


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


# --------------------------------------------------------------------------------------------------------- positions


def test_alibi_counts_the_distance_on_both_sides():
    bias = alibi_bias(2, 4)
    slopes = [1 / 16, 1 / 256]
    for head, query, key in np.ndindex(2, 4, 4):
        assert bias[head, query, key] == -slopes[head] * abs(query - key)
    assert np.array_equal(alibi_bias(2, 2, 4), bias[:, 2:])  # the last two queries, the first two keys in a cache


def test_the_two_pairings_are_the_same_rotation_of_reordered_components():
    x, angles = rng.normal(size=(3, 8)), rotary_angles(range(3), 8)
    order = np.concatenate([np.arange(0, 8, 2), np.arange(1, 8, 2)])
    half = rotate(x[:, order], angles=angles, pairing="half")
    np.testing.assert_allclose(half, rotate(x, angles=angles, pairing="adjacent")[:, order])


def test_shifting_a_sinusoidal_code_is_a_rotation():
    code = sinusoidal_positions(12, 8)
    turned = rotate(code[:7, ::-1], angles=rotary_angles([5] * 7, 8)[:, ::-1], pairing="adjacent")[:, ::-1]
    np.testing.assert_allclose(turned, code[5:], atol=1e-12)


def scaled_angles(positions, width, base=1e4, *, scaling=None, factor=1.0, trained=None):
    if isinstance(scaling, str):
        scaling = RotaryScaling(scaling, factor, trained)
    elif scaling is not None:
        scaling = replace(scaling, factor=max(factor, scaling.factor), trained=scaling.trained or trained)
    return rotary_angles(positions, width, base, scaling)


def test_scaled_angles_of_a_long_context_fit_into_the_trained_range():
    trained, factor = 128, 4
    plain = scaled_angles([trained], 16, trained=trained)
    options = {"factor": factor, "trained": trained}
    far = {s: scaled_angles([trained * factor], 16, scaling=s, **options) for s in ("linear", "ntk", "yarn")}
    np.testing.assert_allclose(far["linear"], plain)
    np.testing.assert_allclose(far["ntk"][0, -1], plain[0, -1])  # the slowest pair is stretched by the whole factor
    np.testing.assert_allclose(far["ntk"][0, 0], factor * plain[0, 0])  # the fastest one not at all
    np.testing.assert_allclose(far["yarn"][0, -1], plain[0, -1])
    np.testing.assert_allclose(far["yarn"][0, 0], factor * plain[0, 0])  # it turns twenty times in the trained length
    share = far["yarn"] / (factor * plain)
    assert np.all(np.diff(share[0]) <= 1e-12)  # from 1 to 1/4, pair by pair


def test_llama3_keeps_fast_pairs_stretches_slow_ones_and_mixes_those_between_by_their_turns():
    trained, factor, options = 8192, 8.0, {"factor": 8.0, "trained": 8192}
    plain, scaled = (scaled_angles([1], 128, 5e5, scaling=s, **options)[0] for s in (None, "llama3"))
    turns = trained * plain / (2 * np.pi)
    np.testing.assert_allclose(scaled[turns > 4], plain[turns > 4], rtol=1e-15)
    np.testing.assert_allclose(scaled[turns < 1], plain[turns < 1] / factor, rtol=1e-15)
    between = (turns > 1) & (turns < 4)
    share = (turns[between] - 1) / 3
    expected = (share + (1 - share) / factor) * plain[between]
    assert between.sum() >= 2
    np.testing.assert_allclose(scaled[between], expected, rtol=1e-12)


def test_dynamic_angles_are_the_plain_ones_up_to_the_trained_length_and_those_of_ntk_beyond():
    options = {"factor": 4.0, "trained": 16}
    short, long = np.arange(16), np.arange(28)  # 28 tokens need (4 · 28/16 − 3) = 4 times the context
    np.testing.assert_array_equal(scaled_angles(short, 8, scaling="dynamic", **options), rotary_angles(short, 8))
    stretched = scaled_angles(long, 8, scaling="ntk", factor=4.0)
    np.testing.assert_allclose(scaled_angles(long, 8, scaling="dynamic", **options), stretched, rtol=1e-15)


LONG = RotaryScaling("longrope", trained=8, short=(1, 1.5, 2), long=(2, 4, 8))


def test_longrope_has_a_number_for_each_pair_in_short_texts_and_another_in_long_ones():
    for length, numbers in ((8, LONG.short), (9, LONG.long)):
        positions = np.arange(length)
        np.testing.assert_allclose(scaled_angles(positions, 6, scaling=LONG), rotary_angles(positions, 6) / numbers)


def test_a_scaling_has_settings_of_its_own():
    long = {"factor": 4.0, "trained": 4096}
    for kind in ("yarn", "llama3"):
        other = RotaryScaling(kind, trained=64)
        ours, theirs = scaled_angles([1], 32, scaling=other, **long), scaled_angles([1], 32, scaling=kind, **long)
        np.testing.assert_array_equal(ours, scaled_angles([1], 32, scaling=kind, factor=4.0, trained=64))
        assert np.any(ours < theirs)  # in a shorter text a pair turns less often: more of them are stretched
        few = RotaryScaling(kind, turns=(0.01, 0.02))
        np.testing.assert_allclose(scaled_angles([1], 32, scaling=few, **long), rotary_angles([1], 32))
    whole, parts = (RotaryScaling("yarn", whole_pairs=choice) for choice in (True, False))
    assert np.any(scaled_angles([1], 32, scaling=whole, **long) != scaled_angles([1], 32, scaling=parts, **long))


def test_near_distances_have_a_class_each_and_far_ones_share():
    back = relative_buckets(200)[-1, ::-1]  # 0, 1, 2, … back
    assert back[:16].tolist() == list(range(16))
    classes, sizes = np.unique(back, return_counts=True)
    assert classes.tolist() == list(range(32))
    assert np.all(np.diff(sizes[16:-1:2]) >= 0)
    assert np.flatnonzero(back == 31)[0] < 128  # what begins before the farthest distance holds all beyond it
    assert np.all(back[128:] == 31)
    assert np.all(np.triu(relative_buckets(9), 1) == 0)  # what comes later is as near as can be: a mask hides it


def test_an_encoder_has_half_of_the_classes_for_what_comes_later():
    both, back = relative_buckets(40, causal=False), relative_buckets(40, buckets=16)
    np.testing.assert_array_equal(np.tril(both), back)
    np.testing.assert_array_equal(np.triu(both, 1), np.triu(16 + back.T, 1))


def test_classes_of_the_last_queries_are_the_last_rows():
    np.testing.assert_array_equal(relative_buckets(2, 9, causal=False), relative_buckets(9, causal=False)[-2:])


def test_gradients_reach_every_projection_of_grouped_heads():
    x, params = rng.normal(size=(3, 4)), projections(4, 4, 2, 2) | {"query_bias": rng.normal(size=8)}
    rotation = partial(rotate, angles=rotary_angles(range(3), 2))
    layer = partial(multi_head_attention, heads=4, kv_heads=2, mask=causal_mask(3), rotation=rotation)
    assert ml.check_gradient(layer, x, params).error < TOLERANCE


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: attention(*np.ones((3, 2, 3)), np.ones((3, 3), bool)), ml.ShapeError, "T is 2 in query, 3 in mask"),
        (lambda: attention(*np.ones((3, 2, 3)), np.ones((2, 2))), TypeError, "booleans"),
        (lambda: causal_mask(3, 2), ml.ShapeError, "got 3 and 2"),
        (
            lambda: multi_head_attention(np.ones((1, 2, 4)), dict.fromkeys(("query", "key"), np.ones((5, 4))), heads=2),
            ml.ShapeError,
            r"shapes \(1, 2, 4\) and \(5, 4\): n is 4 in x, 5 in W",
        ),
        (lambda: padding_mask([[2]]), ValueError, "0 or 1"),
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
        (lambda: RotaryScaling("longrope", short=(1, 2)), ValueError, r"short and long, got \(1, 2\) and None"),
        (lambda: rotary_angles([1], 4, scaling=LONG), ml.ShapeError, "has 2 pairs, longrope numbers for 3"),
        (lambda: RotaryScaling("yarn", turns=(32, 1)), ValueError, r"smaller one first, got \(32, 1\)"),
        (lambda: RotaryScaling("yarn", attention_factor=0.0), ValueError, r"attention_factor in \(0, ∞\)"),
        (lambda: alibi_bias(3, 2), ValueError, "power of two"),
        (lambda: relative_buckets(3, buckets=3, causal=False), ValueError, "into 3 buckets"),
        (lambda: relative_buckets(3, farthest=16), ValueError, "distances up to 16 into 32 buckets"),
    ],
)
def test_what_cannot_be_right_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()
