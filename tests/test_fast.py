"""The fast ring gives the numbers of the readable one: the loss, its gradient, a training run, a step of decoding."""

import itertools
import multiprocessing

import numpy as np
import pytest
from test_training_loop import equal

import mathllm as ml
from mathllm import fast
from mathllm.fast.decoding import DecodingStep, ReadingStep
from mathllm.inference import KVCache
from mathllm.trees import flatten

# A sum in another order differs in the last digits: some units of rounding, times the root of the number of terms.
ROUNDING = {np.float32: 2e-5, np.float64: 1e-12}
SIZES = {"vocabulary": 13, "width": 16, "layers": 2, "heads": 4, "hidden": 20, "context": 160}
CONFIGS = {
    "gpt2": ml.gpt2_config(**SIZES),
    "gpt2, untied": ml.gpt2_config(**SIZES, tied=False),
    "gpt2, no positions": ml.gpt2_config(**SIZES, positions="none"),
    "llama": ml.llama_config(**SIZES),
    "llama, grouped and tied": ml.llama_config(**SIZES, kv_heads=2, tied=True, pairing="adjacent"),
    "llama, multi-query": ml.llama_config(**SIZES, kv_heads=1),
    "llama, stretched": ml.llama_config(**SIZES, rope_scaling=ml.RotaryScaling("yarn", 4.0)),
    "gated, with biases": ml.Config(**SIZES, gated=True),
}
OTHERS = {
    "bert": ml.transformer.bert_config(**SIZES),
    "mixtral": ml.transformer.mixtral_config(**SIZES | {"kv_heads": 2, "experts": 3}),
    "alibi": ml.Config(**SIZES, positions="alibi"),
    "relu": ml.gpt2_config(**SIZES, activation="relu"),
    "exact gelu": ml.gpt2_config(**SIZES, activation="gelu"),
    "post-norm": ml.gpt2_config(**SIZES, norm_order="post"),
}


def models(config, dtype=np.float64, seed=0):
    """The readable and the fast model, and parameters large enough that every part of them matters."""
    rng, model = np.random.default_rng(seed), ml.Transformer(config)
    params = ml.tree_map(lambda p: (p + 0.3 * rng.normal(size=p.shape)).astype(dtype), model.init(rng))
    return model, fast.Transformer(config), params


def batch(length, rows=3, seed=1):
    tokens, targets = np.random.default_rng(seed).integers(13, size=(2, rows, length))
    targets[0, : length // 4] = -100
    return tokens, targets


def assert_close(ours, theirs, dtype, within=None):
    """All arrays agree, relative to the largest number among them: the gradient of a key's bias is 0 up to rounding."""
    scale = max(np.abs(leaf).max() for leaf in ml.tree_leaves(theirs))
    for a, b in zip(ml.tree_leaves(ours), ml.tree_leaves(theirs), strict=True):
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(a / scale, b / scale, rtol=0, atol=within or ROUNDING[dtype])


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1, 64, 150])  # a block of queries and less, exactly one, several
def test_loss_and_gradient_are_those_of_the_readable_model(name, dtype, length):
    readable, model, params = models(CONFIGS[name], dtype)
    tokens, targets = batch(length)
    expected, slopes = ml.value_and_grad(lambda p: readable.next_token_loss(p, tokens, targets))(params)
    for leaf in ml.tree_leaves(params):
        leaf.flags.writeable = False  # a write would raise
    loss, gradient = ml.value_and_grad(lambda p: model.next_token_loss(p, tokens, targets))(params)
    assert loss.dtype == dtype
    assert float(loss) == pytest.approx(float(expected), rel=ROUNDING[dtype])
    assert_close(gradient, slopes, dtype)


@pytest.mark.parametrize("config", [*OTHERS.values(), CONFIGS["llama"]], ids=[*OTHERS, "llama, padding"])
def test_other_models_and_padding_are_computed_by_the_readable_form(config):
    readable, model, params = models(config)
    assert model.fits == (config not in OTHERS.values())
    arguments = *batch(7), np.arange(7) >= np.array([[0], [2], [3]]) if model.fits else None
    assert float(model.next_token_loss(params, *arguments)) == float(readable.next_token_loss(params, *arguments))


def test_a_tap_is_computed_by_the_readable_form():
    _, model, params = models(CONFIGS["llama"])
    model.next_token_loss(params, *batch(7), tap=ml.record_to(record := {}))
    assert record["logits"].shape == (3, 7, 13)


def test_two_losses_before_their_gradients_do_not_share_memory():
    readable, model, params = models(CONFIGS["llama"])
    first, second = batch(9, seed=1), batch(9, seed=2)

    def both(model):
        return ml.grad(lambda p: model.next_token_loss(p, *first) * 2 + model.next_token_loss(p, *second))(params)

    for _ in range(2):  # the second time in memory that was used before
        assert_close(both(model), both(readable), np.float64)


def test_a_gradient_can_be_computed_once():
    _, model, params = models(CONFIGS["llama"])
    _, pullback = ml.vjp(lambda p: model.next_token_loss(p, *batch(5)), params)
    pullback(1.0)
    with pytest.raises(RuntimeError, match="computed already"):
        pullback(1.0)


@pytest.mark.parametrize(
    ("tokens", "targets", "words"),
    [
        ([[1, 2]], [[-100, -100]], "at least one label that counts, got none"),
        ([[1, 2]], [[0, 13]], "labels from 0 to 12 .*, got 13"),
        ([[1, 2]], [[0]], "T is 2 in tokens, 1 in targets"),
        (np.ones((2, 0), int), np.ones((2, 0), int), "T is 0 in tokens"),
        (np.ones((0, 2), int), np.ones((0, 2), int), "B is 0 in tokens"),
        ([[1, 13]], [[0, 1]], "got 13"),
        ([[0] * 161], [[0] * 161], "context is 160"),
    ],
)
def test_a_loss_that_has_no_meaning_is_refused(tokens, targets, words):
    _, model, params = models(CONFIGS["gpt2"])
    with pytest.raises(ValueError, match=words):
        model.next_token_loss(params, tokens, targets)


@pytest.mark.parametrize(
    "scaling",
    [
        ml.RotaryScaling("dynamic", 4.0, trained=20),
        ml.RotaryScaling("longrope", 4.0, trained=20, short=(1.0, 1.5), long=(2.0, 3.0)),
    ],
    ids=lambda scaling: scaling.kind,
)
def test_rotations_computed_ahead_stay_below_the_length_that_changes_all_frequencies(scaling):
    model, _, params = models(ml.llama_config(**SIZES, rope_scaling=scaling))
    tokens = np.random.default_rng(2).integers(13, size=20)
    step = DecodingStep(model.config, params, KVCache(model.config, capacity=21))
    logits = [step(int(token)) for token in tokens]
    np.testing.assert_allclose(logits, model(params, tokens[None])[0], rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="longer than 20 tokens"):
        step(0)


def test_a_decoding_step_after_a_cropped_cache_continues_from_there():
    model, _, params = models(CONFIGS["llama"])
    cache = KVCache(model.config)
    step = DecodingStep(model.config, params, cache)
    first = [step(token) for token in (1, 2, 3)]
    cache.crop(1)
    np.testing.assert_allclose([step(token) for token in (2, 3)], first[1:], rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="from 0 to 12, got 13"):
        step(13)


def test_matrices_that_are_neighbours_in_memory_are_read_where_they_are():
    model, _, params = models(CONFIGS["llama"])
    vector, views = flatten(params)  # neighbours as well, but not column by column
    params = views(vector)
    attention, names = params["blocks"][1]["attention"], ("query", "key", "value")
    columns = np.ascontiguousarray(np.concatenate([attention[name].T for name in names]))
    attention |= zip(names, (part.T for part in np.split(columns, 3)), strict=True)
    step = DecodingStep(model.config, params, KVCache(model.config))
    columns *= 2  # a copy would not change
    np.testing.assert_allclose([step(token) for token in (1, 2, 3)], model(params, [[1, 2, 3]])[0], rtol=0, atol=1e-12)


def test_neighbours_in_memory_of_several_dtypes_are_not_read_as_one_matrix():
    model, _, params = models(CONFIGS["llama"])
    attention, place = params["blocks"][0]["attention"], 0
    memory = np.empty(sum(attention[name].nbytes for name in ("query", "key", "value")), np.uint8)  # as of a file
    for name, dtype in (("query", np.float64), ("key", np.float32), ("value", np.float64)):
        rows = attention[name].T.astype(dtype)
        part = memory[place : place + rows.nbytes].view(dtype).reshape(rows.shape)
        part[:], place = rows, place + rows.nbytes
        attention[name] = part.T
    step = DecodingStep(model.config, params, KVCache(model.config))
    np.testing.assert_allclose([step(token) for token in (1, 2, 3)], model(params, [[1, 2, 3]])[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("config", [*CONFIGS.values(), *(c for c in OTHERS.values() if c.causal)])
def test_generation_gives_the_text_of_the_readable_model(config):
    readable, model, params = models(config)
    prompt = batch(5)[0]
    for rows in (prompt[:1], prompt):
        expected = ml.generate(readable, params, rows, max_new_tokens=12)
        np.testing.assert_array_equal(fast.generate(model, params, rows, max_new_tokens=12), expected)
        np.testing.assert_array_equal(fast.generate(readable, params, rows, max_new_tokens=12), expected)


@pytest.mark.parametrize(("kind", "rows"), [(DecodingStep, 1), (ReadingStep, 8)])
def test_tokens_are_read_by_the_step_that_is_made_for_them(monkeypatch, kind, rows):
    _, model, params = models(CONFIGS["llama"])
    calls, step = [], kind.__call__
    monkeypatch.setattr(kind, "__call__", lambda self, x: calls.append(x) or step(self, x))
    text = fast.generate(model, params, [[1, 2, 3]], max_new_tokens=4, num_return_sequences=rows)
    assert text.shape == (rows, 7)
    assert len(calls) >= 3  # the prompt is read otherwise


def assert_same_logits(readable, model, params, tokens, pieces, within, caches):
    """Piece by piece, the same logits after the last two tokens; in the end, the same keys and values."""
    for start, stop in itertools.pairwise(pieces):
        logits, expected = (
            one.last_logits(params, tokens[:, start:stop], cache=cache, count=min(stop - start, 2))
            for one, cache in zip((model, readable), caches, strict=True)
        )
        assert logits.dtype == expected.dtype
        np.testing.assert_allclose(logits, expected, rtol=0, atol=within * np.abs(expected).max())
    for part in ("keys", "values"):
        ours, theirs = (getattr(cache, part) for cache in caches)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=within * np.abs(theirs).max())


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 3])  # a decoding step where one row reads one token, else a reading step
def test_a_text_read_in_pieces_has_the_logits_of_the_model(name, dtype, rows):
    readable, model, params = models(CONFIGS[name], dtype)
    caches = [KVCache(model.config, batch_size=rows, capacity=40, dtype=dtype) for _ in range(2)]
    pieces = [0, 5, *range(6, 37), 40]  # more than the 32 positions whose rotations are computed at a time
    assert_same_logits(readable, model, params, batch(40, rows)[0], pieces, 10 * ROUNDING[dtype], caches)


@pytest.mark.parametrize("name", ["gpt2", "llama, grouped and tied"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("options", [{"capacity": 12}, {"window": 4}], ids=str)
def test_padding_and_what_lies_before_the_window_is_not_seen(name, rows, options):
    readable, model, params = models(CONFIGS[name])
    caches, tokens = [KVCache(model.config, batch_size=rows, **options) for _ in range(2)], batch(12, rows)[0]
    for cache in caches:
        readable(params, tokens[:, :4], [[0, 1, 1, 1], [1, 1, 1, 1]][:rows], cache=cache)
    assert_same_logits(readable, model, params, tokens[:, 4:], [0, 3, 4, 5, 6, 8], 1e-12, caches)


@pytest.mark.parametrize("size", [30.0, 1e4])
def test_huge_scores_and_gates_do_not_overflow(size):
    readable, model, params = models(CONFIGS["llama"])
    for block in params["blocks"]:
        block["attention"]["query"] *= size
        block["feed_forward"]["gate"] *= size
    (expected, slopes), (loss, gradient) = (
        ml.value_and_grad(lambda p, one=one: one.next_token_loss(p, *batch(70)))(params) for one in (readable, model)
    )
    assert float(loss) == pytest.approx(float(expected), rel=1e-9)
    assert_close(gradient, slopes, np.float64, within=1e-8)
    params = ml.tree_map(np.float32, params)
    logits = DecodingStep(model.config, params, KVCache(model.config, dtype=np.float32))(3)
    expected = readable(params, [[3]])[0, 0]
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_tokens_that_the_model_does_not_have_are_refused_and_leave_the_cache_as_it_was():
    _, model, params = models(CONFIGS["gpt2"])
    cache = KVCache(model.config, batch_size=2, capacity=4)
    for tokens, error in (
        ([[1], [13]], (IndexError, ValueError)), ([[1], [-1]], (IndexError, ValueError)), ([[1]], ml.ShapeError),
        (np.ones((2, 5), int), ml.ShapeError), (np.ones((2, 0), int), ml.ShapeError), ([1, 2], ml.ShapeError),
    ):  # fmt: skip
        with pytest.raises(error):
            model.last_logits(params, tokens, cache=cache)
        assert cache.length == 0


def test_a_step_of_one_token_refuses_what_the_readable_form_refuses():
    *both, params = models(CONFIGS["gpt2"])
    for model in both:
        with pytest.raises(TypeError, match="integer"):
            model.last_logits(params, [[1.7]], cache=KVCache(model.config))


def test_drafts_are_checked_with_the_logits_of_the_readable_model():
    readable, model, params = models(CONFIGS["llama"])
    draft = ml.inference.ModelDraft(model, params)
    result = ml.inference.speculative_generate(model, params, [[1, 2, 3]], draft, max_new_tokens=5)
    np.testing.assert_array_equal(result.tokens, ml.generate(readable, params, [[1, 2, 3]], max_new_tokens=5))


forks = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system cannot fork")


def run(train, model, params, steps=5, state=None, **options):
    stream = np.random.default_rng(2).integers(13, size=500)
    state = state or ml.training_state(params, np.random.default_rng(3))
    loss = lambda params, batch: model.next_token_loss(params, *batch)  # noqa: E731
    options = {"learning_rate": 1e-2, "max_norm": 1.0, "weight_decay": 0.1} | options
    return train(state, loss, lambda rng: ml.random_batch(stream, 6, 8, rng), steps, **options)


@forks
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_run_has_the_losses_and_parameters_of_the_readable_run(name, workers):
    readable, model, params = models(CONFIGS[name])
    before = ml.tree_map(np.copy, params)
    expected, history = run(ml.train, readable, params)
    state, ours = run(fast.train, model, params, workers=workers)
    np.testing.assert_allclose([h.loss for h in ours], [h.loss for h in history], rtol=1e-10)
    np.testing.assert_allclose([h.gradient_norm for h in ours], [h.gradient_norm for h in history], rtol=1e-8)
    # Adam divides the gradient of a key's bias, which is rounding alone, by ε.
    assert_close(state.params, expected.params, np.float64, within=1e-9)
    assert state.step == state.optimizer["step"] == 5
    assert equal(params, before)
    assert not multiprocessing.active_children()


def test_decay_of_each_weight_other_optimisers_and_parameters_of_several_dtypes_are_trained_too():
    readable, model, params = models(CONFIGS["llama"])
    start = ml.training_state(params, np.random.default_rng(3), ml.gradient_descent.sgd_init)
    for options in (
        {"step": ml.gradient_descent.sgd_step, "weight_decay": 0.0, "state": start},
        {"weight_decay": ml.tree_map(lambda p: 0.3 * (p.ndim > 1), params)},
    ):
        expected, _ = run(ml.train, readable, params, **options)
        assert_close(run(fast.train, model, params, **options)[0].params, expected.params, np.float64, within=1e-9)
    params["final_norm"]["gain"] = params["final_norm"]["gain"].astype(np.float32)
    assert equal(run(fast.train, model, params)[0].params, run(ml.train, model, params)[0].params)


def test_where_a_system_cannot_fork_one_worker_trains(monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    _, model, params = models(CONFIGS["llama"])
    assert equal(run(fast.train, model, params, workers=2)[0].params, run(fast.train, model, params)[0].params)
