"""Chapter 14: choosing tokens, keeping keys and values, beams, guesses checked, and a watermark."""
# ruff: noqa: I001 (the names of the chapter are one paragraph)

import itertools
import math

import numpy as np
import pytest
from refusing import refusing

import mathllm as ml
from mathllm.attention import RotaryScaling, sliding_window_mask
from mathllm.inference import (
    KVCache, ModelDraft, PromptLookup, accept_drafts, apply_temperature, beam_search, continuation, detect_watermark,
    generate, greedy, green_list, keep_min_p, keep_top_k, keep_top_p, kv_cache_bytes, left_pad,
    penalize_repetition, sample_token, speculative_generate, watermark_logits,
)  # fmt: skip
from mathllm.transformer import Config, Transformer, gpt2_config, llama_config, mixtral_config, t5_config
from mathllm.transformer import model as model_module

EXACT = 1e-12  # the same sums in another order, in float64
SIZES = {"vocabulary": 11, "width": 8, "layers": 2, "heads": 4, "hidden": 12, "context": 24}
CONFIGS = {
    "gpt2": gpt2_config(**SIZES),
    "llama": llama_config(**SIZES),
    "llama, grouped and tied": llama_config(**SIZES, kv_heads=2, tied=True, pairing="adjacent"),
    "llama, multi-query": llama_config(**SIZES, kv_heads=1),
    "llama, stretched": llama_config(**SIZES, rope_scaling=ml.RotaryScaling("yarn", 4.0)),
    "llama 3": llama_config(**SIZES, rope_scaling=RotaryScaling("llama3", 4.0, trained=4, turns=(0.1, 1))),
    "mixtral": mixtral_config(**SIZES | {"kv_heads": 2, "experts": 4}),
    "alibi, post-norm": Config(**SIZES, positions="alibi", norm_order="post", activation="relu"),
    "gated, with biases": Config(**SIZES, gated=True),
    "alibi, grouped": Config(**SIZES, positions="alibi", kv_heads=2),
    "sinusoidal": Config(**SIZES, positions="sinusoidal"),
    "no positions": Config(**SIZES, positions="none"),
    "t5": t5_config(**SIZES, head_width=3, t5=ml.transformer.T5Parts(6, 4, 8**-0.5)),
    "translator": Config(**SIZES, encoder_layers=2),
    "translator, rms without biases": Config(**SIZES, encoder_layers=2, norm="rms", bias=False),
}
TOKENS = np.random.default_rng(14).integers(0, 11, size=(2, 6))
TOKENS.flags.writeable = False


def model_of(name, seed=0):
    """A model with weights large enough that every part of it matters; nobody can write to them."""
    noise = np.random.default_rng(seed)
    model = Transformer(CONFIGS[name] if isinstance(name, str) else name)
    options = {"source": TOKENS[:, ::-1]} if model.config.encoder_layers else {}
    params = ml.tree_map(lambda w: w + 0.3 * noise.normal(size=w.shape), model.init(noise))
    for leaf in ml.tree_leaves(params):
        leaf.flags.writeable = False  # a write would raise
    return model, params, options


# ------------------------------------------------------------------------------------------------------------- filters


def test_the_nucleus_of_equal_tokens_takes_the_first_of_them():
    np.testing.assert_array_equal(np.isfinite(keep_top_p(np.zeros((2, 4)), 0.5)), [[True, True, False, False]] * 2)


def test_repetition_penalty_divides_positive_and_multiplies_negative_logits_once_per_token_and_not_for_padding():
    logits = np.array([[3.0, -3.0, 1.0], [3.0, -3.0, 1.0]])
    out = penalize_repetition(logits, [[0, 0, 1], [1, 2, 0]], 1.5, attention_mask=[[1, 1, 1], [0, 1, 1]])
    np.testing.assert_allclose(out, [[2.0, -4.5, 1.0], [2.0, -3.0, 1 / 1.5]])


FILTERS = {
    "temperature": lambda z: apply_temperature(z, 0.7),
    "top k": lambda z: keep_top_k(z, 2),
    "top p": lambda z: keep_top_p(z, 0.9),
    "min p": lambda z: keep_min_p(z, 0.1),
    "repetition": lambda z: penalize_repetition(z, np.zeros((len(z), 1), int), 1.3),
    "watermark": lambda z: watermark_logits(z, np.zeros((len(z), 1), int)),
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_filters_keep_dtype_shape_and_input(name, dtype):
    z = np.array([[1e4, -1e4, 0], [1, 2, -np.inf]], dtype)
    z.flags.writeable = False
    out = FILTERS[name](z)
    assert (out.dtype, out.shape) == (dtype, z.shape)
    assert np.isfinite(out.max(axis=-1)).all()
    assert FILTERS[name](np.zeros((0, 3), dtype)).shape == (0, 3)
    assert np.isfinite(FILTERS["top p"](np.zeros((1, 1), dtype))).all()


# --------------------------------------------------------------------------------------------------------------- cache


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("pieces", [[1] * 6, [6], [3, 1, 2]])
def test_logits_with_a_cache_are_those_without(name, pieces):
    model, params, options = model_of(name)
    cache, found = KVCache(model.config, batch_size=2, capacity=6), []
    for start, piece in zip(np.cumsum([0, *pieces]), pieces, strict=False):
        found.append(model(params, TOKENS[:, start : start + piece], cache=cache, **options))
        options = {}  # the source is read once
    reference_logits = model(params, TOKENS, **model_of(name)[2])
    np.testing.assert_allclose(np.concatenate(found, axis=1), reference_logits, rtol=0, atol=EXACT)
    assert cache.length == cache.visible == 6


@pytest.mark.parametrize("name", CONFIGS)
def test_padding_on_the_left_changes_nothing_with_a_cache(name):
    model, params, options = model_of(name)
    padded, mask = left_pad([TOKENS[0], TOKENS[1, :3]])
    cache = KVCache(model.config, batch_size=2, capacity=7)
    logits = model(params, padded, mask, cache=cache, **options)
    alone = [{name: value[row : row + 1] for name, value in options.items()} for row in (0, 1)]
    np.testing.assert_allclose(logits[:1], model(params, TOKENS[:1], **alone[0]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(logits[1:, 3:], model(params, TOKENS[1:, :3], **alone[1]), rtol=0, atol=1e-10)
    after = model(params, [[5], [5]], cache=cache)[1]  # its position goes on from three and not from six
    longer = np.append(TOKENS[1, :3], 5)[None]
    np.testing.assert_allclose(after, model(params, longer, **alone[1])[0, -1:], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "translator"])
def test_a_cache_with_a_window_is_attention_with_a_sliding_window(name, monkeypatch):
    model, params, options = model_of(name)
    tokens = np.random.default_rng(0).integers(0, 11, size=(2, 20))
    cache = KVCache(model.config, batch_size=2, window=4)
    pieces = [4, 1, 1, 1, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1]
    found = [
        model(params, tokens[:, start : start + piece], cache=cache, **options)
        for start, piece in zip(np.cumsum([0, *pieces]), pieces, strict=False)
    ]
    monkeypatch.setattr(model_module, "causal_mask", lambda length: sliding_window_mask(length, 4))
    np.testing.assert_allclose(np.concatenate(found, axis=1), model(params, tokens, **options), rtol=0, atol=1e-10)
    assert (cache.length, cache.visible, cache.capacity) == (20, 4, 8)


def test_a_cache_takes_the_memory_that_the_calculator_says():
    config = CONFIGS["llama, grouped and tied"]
    sizes = {"layers": 2, "kv_heads": 2, "head_width": 2, "tokens": 9, "batch_size": 3, "bytes_per_number": 4}
    assert KVCache(config, batch_size=3, capacity=9, dtype=np.float32).nbytes == kv_cache_bytes(**sizes)


def test_a_refused_call_leaves_the_cache_as_it_was():
    model, params, _ = model_of("llama")
    cache = KVCache(model.config, capacity=4)
    model(params, [[1, 2]], cache=cache)
    for tokens in ([[11]], [[1, 2, 3]], [[1], [2]]):
        with pytest.raises(ValueError, match=r"got 11|room for 2|for 1 seq"):
            model(params, tokens, cache=cache)
    np.testing.assert_allclose(model(params, [[3]], cache=cache)[0], model(params, [[1, 2, 3]])[0, 2:], atol=EXACT)


# ---------------------------------------------------------------------------------------------------------------- beam


def random_tables(seed, size=3):
    """ln P(next | all so far), another one for every beginning."""

    def after(sequences, parents):
        noises = [np.random.default_rng([seed, *sequence]) for sequence in sequences.tolist()]
        return np.array([ml.log_softmax(noise.normal(0, 2, size)) for noise in noises])

    return after


def all_sequences(after, length, size=3, end=None):
    """Every continuation up to `length`, with its log-probability: those that end, and those cut off."""
    open_, closed = {(): 0.0}, {}
    for _ in range(length):
        steps = {s: after(np.array([s], int).reshape(1, -1), None)[0] for s in open_}
        longer = {(*s, t): open_[s] + steps[s][t] for s in open_ for t in range(size)}
        closed |= {s: total for s, total in longer.items() if s[-1] == end}
        open_ = {s: total for s, total in longer.items() if s[-1] != end}
    return open_ | closed


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("beams", [4, 81])
def test_hypotheses_come_best_first_with_their_scores_and_with_beams_enough_they_are_the_best(seed, alpha, beams):
    after = random_tables(seed)
    found = beam_search(after, num_beams=beams, max_new_tokens=4, length_penalty=alpha, eos_token_id=0)
    totals = all_sequences(after, 4, end=0)
    scores = {tokens: total / len(tokens) ** alpha for tokens, total in totals.items()}
    assert len(found) == min(beams, len(totals))
    assert found == sorted(found, key=lambda hypothesis: -hypothesis.score)
    for hypothesis in found:
        assert math.isclose(hypothesis.log_probability, totals[hypothesis.tokens])
        assert math.isclose(hypothesis.score, scores[hypothesis.tokens])
    assert beams == 4 or found[0].tokens == max(scores, key=scores.get)


def test_hypotheses_that_have_ended_are_found_where_nothing_goes_on():
    only_the_end = np.array([[0.0, -np.inf]])
    found = beam_search(lambda *_: only_the_end, num_beams=2, max_new_tokens=5, eos_token_id=0)
    assert found == [((0,), 0.0, 0.0)]
    assert beam_search(random_tables(0), num_beams=2, max_new_tokens=0) == [((), 0.0, 0.0)]


# ---------------------------------------------------------------------------------------------------------- generation


@pytest.mark.parametrize(
    "scaling", [RotaryScaling("dynamic", 4.0), RotaryScaling("longrope", 2.0, short=(1.0,), long=(4.0,))]
)
def test_a_text_that_outgrows_its_rotary_positions_is_read_anew_for_every_token(scaling):
    model = Transformer(llama_config(**SIZES | {"context": 6}, rope_scaling=scaling))
    params = ml.tree_map(lambda w: 10 * w, model.init(np.random.default_rng(1)))
    text = TOKENS[:1, :3].tolist()
    for _ in range(12):
        text[0].append(int(np.argmax(model(params, text)[0, -1])))
    assert generate(model, params, TOKENS[:1, :3], max_new_tokens=12).tolist() == text
    cache = KVCache(model.config, capacity=20)
    np.testing.assert_allclose(model(params, [text[0][:6]], cache=cache), model(params, [text[0][:6]]), atol=EXACT)
    with pytest.raises(ValueError, match="read it without a cache"):
        model(params, [text[0][6:7]], cache=cache)
    with pytest.raises(ValueError, match="no window"):
        generate(model, params, [[1]], max_new_tokens=7, window=3)
    with pytest.raises(ValueError, match="no speculative_generate"):
        speculative_generate(model, params, [[1]], PromptLookup(), max_new_tokens=7)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("choice", [{"temperature": 0.8, "top_p": 0.9}, {"num_beams": 3, "repetition_penalty": 1.5}])
def test_generation_is_the_same_with_and_without_a_cache(name, choice):
    model, params, options = model_of(name)
    padded, mask = left_pad([TOKENS[0, :4], TOKENS[1, :2]])
    options = {"attention_mask": mask, "max_new_tokens": 8} | choice | options
    texts = []
    for use_cache in (True, False):
        draw = {"rng": np.random.default_rng(3)} if "temperature" in choice else {}
        texts.append(generate(model, params, padded, use_cache=use_cache, **draw, **options))
    assert texts[0].shape == (2, 12)
    np.testing.assert_array_equal(*texts)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(
    "extra", [{"num_beams": 3, "length_penalty": 0.5}, {"repetition_penalty": 1.3, "window": 3}, {"window": 1}]
)
def test_prompts_of_different_lengths_go_on_together_as_they_would_alone(name, extra):
    model, params, options = model_of(name)
    prompts = [TOKENS[0, :5], TOKENS[1, :2]]
    padded, mask = left_pad(prompts)
    padded.flags.writeable = mask.flags.writeable = False  # a write would raise
    extra = {"max_new_tokens": 6, "eos_token_id": 3} | extra
    together = generate(model, params, padded, attention_mask=mask, pad_token_id=0, **extra, **options)
    for row, prompt in enumerate(prompts):
        own = {key: value[row : row + 1] for key, value in options.items()}
        alone = generate(model, params, prompt[None], **extra, **own)[0, len(prompt) :]
        new = together[row, 5:]
        np.testing.assert_array_equal(new[: len(alone)], alone)
        assert not new[len(alone) :].any()


def test_of_no_prompt_and_of_no_more_tokens_nothing_is_written():
    model, params, _ = model_of("gpt2")
    np.testing.assert_array_equal(generate(model, params, TOKENS, max_new_tokens=0), TOKENS)
    assert generate(model, params, np.zeros((0, 3), int)).shape == (0, 3)


def test_a_row_that_has_ended_is_padded_and_all_ended_rows_stop():
    model, params, _ = model_of("gpt2")
    free = generate(model, params, TOKENS[:, :3], max_new_tokens=10)[:, 3:]
    end = int(free[0, 2])
    text = generate(model, params, TOKENS[:, :3], max_new_tokens=10, eos_token_id=end, pad_token_id=0)[:, 3:]
    for row, unbounded in zip(text, free, strict=True):
        stops = np.flatnonzero(unbounded == end)
        stop = stops[0] + 1 if stops.size else len(unbounded)
        np.testing.assert_array_equal(row[:stop], unbounded[: min(stop, len(row))])
        assert not row[stop:].any()
    one = generate(model, params, TOKENS[:1, :3], max_new_tokens=10, eos_token_id=[end, 99])
    assert one[0, -1] == end
    assert one.shape[1] == 3 + np.flatnonzero(free[0] == end)[0] + 1


def test_a_continuation_yields_the_tokens_of_generate_until_the_caller_stops():
    model, params, _ = model_of("llama")
    text = generate(model, params, TOKENS, max_new_tokens=8)
    columns = list(itertools.islice(continuation(model, params, TOKENS), 5))
    np.testing.assert_array_equal(np.stack(columns, axis=1), text[:, 6:11])
    assert len(list(continuation(model, params, TOKENS))) == model.config.context - 6  # the rest of the context


@pytest.mark.parametrize("name", ["gpt2", "llama, grouped and tied", "t5"])
@pytest.mark.parametrize("use_cache", [True, False])
def test_several_continuations_of_a_prompt_are_those_of_repeated_prompts(name, use_cache):
    model, params, options = model_of(name)
    draw = {"max_new_tokens": 5, "temperature": 1.5, "use_cache": use_cache}
    together = generate(model, params, TOKENS, num_return_sequences=3, rng=np.random.default_rng(0), **draw, **options)
    prompts, options = ml.tree_map(lambda rows: np.repeat(rows, 3, axis=0), (TOKENS, options))
    one_by_one = generate(model, params, prompts, rng=np.random.default_rng(0), **draw, **options)
    np.testing.assert_array_equal(together, one_by_one)


def test_unsigned_tokens_are_continued_like_signed_ones():
    model, params, _ = model_of("llama")
    expected = generate(model, params, TOKENS, max_new_tokens=3)
    for dtype in (np.uint8, np.uint64):
        text = generate(model, params, TOKENS.astype(dtype), max_new_tokens=3)
        np.testing.assert_array_equal(text, expected)
        assert text.dtype == expected.dtype  # beside signed numbers, NumPy makes floats of uint64


def test_another_seed_gives_another_text_and_top_k_of_one_is_greedy():
    model, params, _ = model_of("llama")
    draw = lambda seed, **o: generate(model, params, TOKENS, rng=np.random.default_rng(seed), **o)  # noqa: E731
    assert not np.array_equal(draw(1), draw(2))
    np.testing.assert_array_equal(draw(1, top_k=1), generate(model, params, TOKENS))
    np.testing.assert_array_equal(draw(1, min_p=1.0), generate(model, params, TOKENS))


def test_generation_with_a_window_reads_long_prompts_in_pieces():
    model, params, _ = model_of("llama")
    prompt = np.random.default_rng(0).integers(0, 11, (1, 23))
    wide = generate(model, params, prompt, max_new_tokens=5, window=40)
    np.testing.assert_array_equal(wide, generate(model, params, prompt, max_new_tokens=5))
    # a token two layers up sees five positions back: what lies before has no influence
    text, end = (generate(model, params, tokens, max_new_tokens=5, window=3) for tokens in (prompt, prompt[:, -5:]))
    np.testing.assert_array_equal(text[:, 23:], end[:, 5:])


# --------------------------------------------------------------------------------------------------------- speculation


@pytest.mark.parametrize("name", ["gpt2", "llama, grouped and tied", "alibi, post-norm"])
@pytest.mark.parametrize("drafts", [1, 4])
def test_greedy_speculation_gives_the_greedy_text(name, drafts):
    model, params, _ = model_of(name)
    close = {"embedding": params["embedding"] + 0.1 * np.random.default_rng(1).normal(size=params["embedding"].shape)}
    expected = generate(model, params, TOKENS[:1, :3], max_new_tokens=15)
    for draft in (params | close, model_of(name, seed=9)[1]):
        result = speculative_generate(
            model, params, TOKENS[:1, :3], ModelDraft(model, draft), max_new_tokens=15, num_drafts=drafts
        )
        np.testing.assert_array_equal(result.tokens, expected)
        assert result.passes + result.accepted == 15  # each pass adds one token of the large model's own
        assert result.accepted <= result.drafted


def test_a_draft_with_rotary_positions_goes_on_beyond_its_context():
    model, params, _ = model_of(llama_config(**SIZES | {"context": 4}))
    expected = generate(model, params, TOKENS[:1, :3], max_new_tokens=20)
    result = speculative_generate(model, params, TOKENS[:1, :3], ModelDraft(model, params), max_new_tokens=20)
    np.testing.assert_array_equal(result.tokens, expected)
    assert result.accepted == result.drafted


def test_speculation_stops_at_the_end_token():
    model, params, _ = model_of("gpt2")
    expected = generate(model, params, TOKENS[:1, :3], max_new_tokens=15)
    end = int(expected[0, 6])
    options = {"max_new_tokens": 15, "eos_token_id": end}
    result = speculative_generate(model, params, TOKENS[:1, :3], ModelDraft(model, params), **options)
    np.testing.assert_array_equal(result.tokens, generate(model, params, TOKENS[:1, :3], **options))


def test_a_draft_looked_up_in_the_prompt_changes_no_token_and_saves_passes():
    model, params, _ = model_of("llama")
    # Greedy texts of small models repeat themselves.
    prompt = generate(model, params, TOKENS[:1, :3], max_new_tokens=12)
    expected = generate(model, params, prompt, max_new_tokens=9)
    result = speculative_generate(model, params, prompt, PromptLookup(2), max_new_tokens=9)
    np.testing.assert_array_equal(result.tokens, expected)
    assert result.passes + result.accepted == 9
    assert result.passes < 9


@pytest.mark.nightly  # by day the promises prove what is accepted and drawn again, and the texts above the way there
@pytest.mark.parametrize(
    ("prompt", "new", "highest"),
    [
        pytest.param([0], 3, 54, id="drafts of a small model"),  # exceeded once in a thousand seeds
        pytest.param([0, 1, 2, 0], 2, 26.2, id="drafts looked up in the prompt"),
    ],
)
def test_speculative_texts_have_the_distribution_of_the_large_model(prompt, new, highest):
    config = gpt2_config(vocabulary=3, width=4, layers=1, heads=1, context=12)
    (model, params, _), small = model_of(config, 1), model_of(config, 2)
    draft = ModelDraft(*small[:2]) if len(prompt) == 1 else PromptLookup(1)
    chance, draws, counts = np.random.default_rng(5), 1500, np.zeros(new * [3])
    options = {"max_new_tokens": new, "num_drafts": new - 1, "temperature": 1.5, "rng": chance}
    for _ in range(draws):
        counts[tuple(speculative_generate(model, params, [prompt], draft, **options).tokens[0, -new:])] += 1
    texts = np.array([(*prompt, *text) for text in itertools.product(range(3), repeat=new)])
    p = ml.softmax(model(params, texts)[:, -new - 1 : -1] / 1.5)
    expected = draws * np.prod(np.take_along_axis(p, texts[:, -new:, None], axis=2)[..., 0], axis=1)
    assert expected.min() > 5  # otherwise the statistic has another distribution
    assert np.sum((counts.ravel() - expected) ** 2 / expected) < highest


def test_the_latest_earlier_occurrence_is_looked_up():
    lookup = PromptLookup(2)
    assert lookup(np.array([1, 2, 3, 1, 2, 4, 1, 2]), 2, None)[0].tolist() == [4, 1]
    assert lookup(np.array([1, 2, 3]), 2, None)[0].size == lookup(np.array([1, 2]), 2, None)[0].size == 0


# ----------------------------------------------------------------------------------------------------------- watermark


def test_a_green_list_has_its_share_and_depends_on_token_and_key():
    lists = np.array([[green_list(token, 40, fraction=0.25, key=key) for token in range(5)] for key in range(3)])
    assert (lists.sum(axis=-1) == 10).all()
    assert len({tuple(one) for one in lists.reshape(-1, 40)}) == 15


def test_p_values_of_unmarked_texts_are_spread_evenly():
    chance = np.random.default_rng(0)
    p = np.array([detect_watermark(chance.integers(0, 50, 200), 50, fraction=0.4).p_value for _ in range(150)])
    for level in (0.25, 0.5, 0.75):
        assert abs(np.mean(p < level) - level) < 0.15  # three and a half standard errors of 150 texts


def test_repetition_is_no_watermark():
    once = detect_watermark([1, 2, 3, 1], 20)
    assert detect_watermark([1, 2, 3] * 50 + [1], 20) == once
    assert once.counted == 3


# --------------------------------------------------------------------------------------------------------- in words


def small():
    return model_of("gpt2")[:2]


def beams_of(log_probability):
    return beam_search(lambda *_: np.full((1, 3), log_probability), num_beams=2, max_new_tokens=2)


def generated_with(logit, **options):
    processor = lambda tokens, logits: np.full_like(logits, logit)  # noqa: E731
    return generate(*small(), [[1]], max_new_tokens=2, logits_processor=processor, **options)


def other_vocabulary(*_):
    """A draft of one of two tokens."""
    return np.array([1]), np.full((1, 2), 0.5)


RNG = np.random.default_rng(0)


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: apply_temperature([1.0], 0), ValueError, "greedy"),
    (lambda: greedy([1.0, np.nan]), ValueError, "NaN"),
    (lambda: apply_temperature([1.0], np.ones(2)), TypeError, "one number temperature, got ndarray"),
    (lambda: sample_token([np.inf, 0.0], RNG), ValueError, r"\+∞"),
    (lambda: sample_token([-np.inf, -np.inf], RNG), ValueError, "all are masked"),
    (lambda: keep_min_p([-np.inf, -np.inf], 0.5), ValueError, "all are masked"),
    (lambda: penalize_repetition([[1.0]], [[1]], 2), ValueError, "from 0 to 0"),
    (lambda: penalize_repetition([[1.0]], [[0.0]], 2), TypeError, "integer token ids, got float64"),
    (lambda: KVCache(CONFIGS["gpt2"], batch_size=0), ValueError, "batch_size.*got 0"),
    (lambda: KVCache(CONFIGS["gpt2"], window=0), ValueError, "window.*got 0"),
    (lambda: KVCache(CONFIGS["gpt2"], capacity=3).crop(1), ValueError, r"length in \[0, 0\], got 1"),
    (lambda: KVCache(CONFIGS["gpt2"], window=3).crop(0), ValueError, "cannot go back"),
    (lambda: KVCache(CONFIGS["gpt2"], window=3).advance((1, 7)), ml.ShapeError, "room for 6.*pieces"),
    (lambda: KVCache(CONFIGS["gpt2"]).advance((1, 2), [[1, 1, 1]]), ml.ShapeError, "has 3 in place of 2"),
    (lambda: beams_of(np.nan), ValueError, "NaN or"),
    (lambda: beams_of(np.inf), ValueError, r"NaN or \+∞"),
    (lambda: beams_of(-np.inf), ValueError, "every next token has probability 0"),
    (lambda: beam_search(lambda *_: np.zeros(3), num_beams=2, max_new_tokens=1), ml.ShapeError, r"\(1, V\)"),
    (lambda: generated_with(np.nan, num_beams=2), ValueError, "NaN or"),
    (lambda: generated_with(-np.inf, num_beams=2), ValueError, "probability 0"),
    (lambda: generated_with(-np.inf), ValueError, "all are masked"),
    (lambda: left_pad([]), ValueError, "at least one prompt"),
    (lambda: left_pad([[1], []]), ValueError, "in each at least one"),
    (lambda: generate(*small(), TOKENS, temperature=0), ValueError, "greedy decoding leave them out"),
    (lambda: generate(*small(), TOKENS, top_p=0.9), ValueError, "give rng="),
    (lambda: generate(*small(), TOKENS, num_beams=2, rng=RNG), ValueError, "draws nothing"),
    (lambda: generate(*small(), TOKENS, num_beams=2, min_p=0.1), ValueError, "draws nothing"),
    (lambda: generate(*small(), TOKENS, num_beams=2, num_return_sequences=2), ValueError, "draws nothing"),
    (lambda: generate(*small(), TOKENS, num_beams=2, window=3), TypeError, "window"),
    (lambda: generate(*small(), TOKENS, max_new_tokens=20), ml.ShapeError, "24 tokens.*need 25"),
    (lambda: generate(*small(), [1, 2]), ml.ShapeError, "left_pad"),
    (lambda: generate(*small(), [[1, 2]], attention_mask=[[1, 0]]), ValueError, "on the left"),
    (lambda: generate(*small(), [[1, 2]], attention_mask=[[1]]), ml.ShapeError, "T is 2 in tokens, 1 in att"),
    (lambda: generate(*small(), [[1]], window=3, use_cache=False), ValueError, "use_cache=True"),
    (lambda: speculative_generate(*small(), TOKENS, PromptLookup()), ml.ShapeError, r"tokens \(1, T\)"),
    (lambda: speculative_generate(*small(), [[1]], PromptLookup(), temperature=0), ValueError, "greedy"),
    (lambda: speculative_generate(*small(), [[1]], other_vocabulary), ml.ShapeError, "draft probabilities"),
    (lambda: speculative_generate(*small(), [[1]], PromptLookup(), repetition_penalty=2), TypeError, "repetition"),
    (lambda: accept_drafts([1], [[0.5, 0.5]], [[0.5, 0.5]], RNG), ml.ShapeError, r"\(2, V\)"),
    (lambda: accept_drafts([-1], [[0.5, 0.5]], [[0.5, 0.5]] * 2, RNG), ValueError, "from 0 to 1, got -1"),
    (lambda: accept_drafts([1.7], [[0.5, 0.5]], [[0.5, 0.5]] * 2, RNG), TypeError, "integer"),
    (lambda: generate(*small(), [[1, 2], [3]]), ml.ShapeError, "left_pad"),
    (lambda: generate(*small(), [[1, 2]], attention_mask=[[0.5, 1]]), ValueError, "{0, 1}, got 0.5"),
    (lambda: generate(*small(), [[1, 2]], max_new_tokens=0, max_length=7), TypeError, "argument 'max_length'"),
    (lambda: generate(*small(), [[1, 2]], source=[[1]]), ValueError, "no encoder"),
    (lambda: generate(*small(), [[1, 2]], window=1.5), ValueError, "whole number window"),
    (lambda: generate(*small(), [[1, 2]], eos_token_id=5.5), TypeError, "integer token ids, got float64"),
    (lambda: generate(*small(), [[1, 2]], pad_token_id=0.5), TypeError, "integer token ids, got float64"),
    (lambda: left_pad([[1.7]]), TypeError, "integer token ids"),
    (lambda: green_list(0, 10, fraction=1.0), ValueError, "10 green of 10"),
    (lambda: detect_watermark([1, 10], 10), ValueError, "from 0 to 9"),
    (lambda: detect_watermark([1.0, 2.0], 10), TypeError, "integer token ids"),
)


def test_a_cache_is_refused_where_it_would_be_wrong():
    encoder = Transformer(Config(**SIZES, causal=False))
    params = encoder.init(np.random.default_rng(0))
    with pytest.raises(ValueError, match="only a causal model"):
        encoder(params, [[1]], cache=KVCache(encoder.config))
    model, params = small()
    with pytest.raises(TypeError, match="no gradients"):
        ml.grad(lambda p: model.loss(p, [[1, 2]], [[1, 2]], cache=KVCache(model.config)))(params)
    with pytest.raises(ml.ShapeError, match="24 tokens, got 25"):
        model(params, np.zeros((1, 25), int), cache=KVCache(model.config, capacity=30))
