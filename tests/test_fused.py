"""What training computes in fewer passes over memory, held against the readable forms that the chapters show."""

import numpy as np
import pytest

import mathllm as ml
from mathllm.autodiff.memory import _empty, _Memory, _reused_memory
from mathllm.gradient_descent.in_place import _adamw_in_place, _own_copy
from mathllm.transformer.fused import _attention_sublayer, _feed_forward_sublayer, _surprise_at, _token_vectors

# A sum in another order differs in the last digits: some units of rounding, times the root of the number of terms.
ROUNDING = {np.float32: 5e-6, np.float64: 1e-13}


def attention_sublayer(x, gain, query, key, value, output, *, heads, angles, pairing, scale, epsilon):
    params = {"query": query, "key": key, "value": value, "output": output}
    kv_heads = key.shape[1] * heads // query.shape[1]
    options = {"heads": heads, "kv_heads": kv_heads, "angles": angles, "pairing": pairing, "scale": scale}
    mask = ml.causal_mask(x.shape[1])
    return x + ml.multi_head_attention(ml.rms_norm(x, gain, epsilon=epsilon), params, mask=mask, **options)


def feed_forward_sublayer(x, gain, gate, up, down, *, epsilon):
    params = {"gate": gate, "up": up, "down": down}
    return x + ml.feed_forward(ml.rms_norm(x, gain, epsilon=epsilon), params, activation="silu")


def random_arrays(dtype, *shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) / np.sqrt(shape[0], dtype=dtype) for shape in shapes]


def assert_same(fused, readable, args, dtype, seed=1):
    """One value, and one gradient for each argument, up to rounding; no argument is touched."""
    for arg in args:
        arg.setflags(write=False)
    value, pullback = ml.vjp(fused, *args)
    expected, expected_pullback = ml.vjp(readable, *args)
    cotangent = np.random.default_rng(seed).standard_normal(expected.shape).astype(dtype)
    for ours, theirs in zip((value, *pullback(cotangent)), (expected, *expected_pullback(cotangent)), strict=True):
        if theirs is not None:
            assert ours.dtype == dtype
            scale = max(np.abs(theirs).max(), 0.1)  # with a single token the scores have no gradient
            np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0, atol=ROUNDING[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1, 5, 64, 65, 150])  # one block of queries, exactly one, several
@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 2), (4, 1)])
def test_attention_with_norm_and_residual_is_what_its_parts_are(dtype, length, heads, kv_heads):
    width, B, D = 6, 3, 20
    shapes = [(B, length, D), (D,), (D, heads * width), (D, kv_heads * width), (D, kv_heads * width),
              (heads * width, D)]  # fmt: skip
    angles = ml.rotary_angles(np.arange(length), width)
    for pairing in ("half", "adjacent"):
        options = {"heads": heads, "angles": angles, "pairing": pairing, "scale": 0.7, "epsilon": 1e-6}
        assert_same(
            lambda *a, options=options: _attention_sublayer(*a, **options),
            lambda *a, options=options: attention_sublayer(*a, **options),
            random_arrays(dtype, *shapes), dtype,
        )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_network_with_norm_and_residual_is_what_its_parts_are(dtype):
    assert_same(
        lambda *a: _feed_forward_sublayer(*a, epsilon=1e-5), lambda *a: feed_forward_sublayer(*a, epsilon=1e-5),
        random_arrays(dtype, (3, 7, 20), (20,), (20, 33), (20, 33), (33, 20)), dtype,
    )  # fmt: skip


@pytest.mark.parametrize("size", [30.0, 1e4])
def test_large_scores_are_no_danger(size):
    shapes = [(2, 70, 8), (8,), (8, 8), (8, 8), (8, 8), (8, 8)]
    x, gain, query, *rest = random_arrays(np.float64, *shapes)
    options = {"heads": 2, "angles": np.zeros((70, 2)), "pairing": "half", "scale": 0.5, "epsilon": 1e-6}
    args = [x, gain, size * query, *rest]
    assert_same(
        lambda *a: _attention_sublayer(*a, **options), lambda *a: attention_sublayer(*a, **options), args, np.float64
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_of_equal_tokens_collect_all_their_gradients(dtype):
    (table,) = random_arrays(dtype, (9, 4))
    ids = np.random.default_rng(0).integers(7, size=(5, 6))
    assert_same(lambda t: _token_vectors(t, ids), lambda t: ml.embedding(t, ids), [table], dtype)
    with pytest.raises(ValueError, match="ids from 0 to 8, got 9"):
        _token_vectors(table, [9])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("masked", [False, True])
def test_the_loss_from_the_last_vectors_is_the_cross_entropy_of_their_logits(dtype, masked):
    x, unembedding = random_arrays(dtype, (3, 50, 8), (8, 1000))
    if masked:
        x[..., 0], unembedding[0, 3] = 1, -np.inf  # a logit of −∞: not the usual way
    targets = np.random.default_rng(0).integers(4, 1000, size=(3, 50))
    targets[0, 10:20] = -100
    with np.errstate(over="ignore", invalid="ignore"):
        assert_same(
            lambda x, w: _surprise_at(30 * x, w, targets), lambda x, w: ml.cross_entropy(30 * x @ w, targets),
            [x, unembedding], dtype,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("targets", "words"), [([[-100, -100]], "at least one label"), ([[0, 9]], "labels from 0 to 4"), ([[0]], "shapes")]
)
def test_a_loss_that_has_no_meaning_is_refused_as_cross_entropy_does(targets, words):
    with pytest.raises(ValueError, match=words):
        _surprise_at(np.ones((1, 2, 3)), np.ones((3, 5)), targets)


def test_logits_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        _surprise_at(np.full((1, 2, 3), np.nan), np.ones((3, 5)), [[1, 2]])


@pytest.mark.parametrize("choices", [{}, {"kv_heads": 2, "tied": True}, {"rope_scaling": "yarn", "rope_factor": 4.0}])
def test_a_model_learns_from_the_fused_blocks_what_it_learns_from_the_readable_ones(choices):
    model = ml.Transformer(ml.llama_config(vocabulary=13, width=16, layers=2, heads=4, hidden=20, **choices))
    params = ml.tree_map(lambda p: 5 * p, model.init(np.random.default_rng(0)))
    tokens = np.random.default_rng(1).integers(13, size=(3, 70))
    loss, gradient = ml.value_and_grad(lambda p: model.loss(p, tokens, tokens))(params)
    readable, expected = ml.value_and_grad(lambda p: model.loss(p, tokens, tokens, record={}))(params)
    assert float(loss) == pytest.approx(float(readable), rel=1e-13)
    ml.tree_map(lambda g, e: np.testing.assert_allclose(g, e, rtol=0, atol=1e-13 * max(1, abs(e).max())),
                gradient, expected)  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- memory


def test_memory_is_handed_out_again_only_when_no_view_of_it_is_left():
    with _reused_memory(_Memory()):
        first = _empty((3, 4), np.float32)
        place, view = first.ctypes.data, first[1:].T
        del first
        assert _empty((3, 4), np.float32).ctypes.data != place, "a view still shows this memory"
        del view
        again = _empty((4, 3), np.float32)
        assert again.ctypes.data == place
        assert _empty((4, 3), np.float32).ctypes.data != place
    assert _empty((2,), np.float64).base is None


def test_gradients_are_the_same_to_the_last_bit_in_memory_that_was_used_before():
    model = ml.Transformer(ml.llama_config(vocabulary=13, width=16, layers=2, heads=4, hidden=20))
    params = model.init(np.random.default_rng(0))
    tokens = np.random.default_rng(1).integers(13, size=(4, 3, 70))
    gradient = ml.grad(lambda p, t: model.loss(p, t, t))
    expected = [gradient(params, some) for some in tokens]
    with _reused_memory(_Memory()):
        found = [gradient(params, some) for some in tokens]
    for pair in zip(found, expected, strict=True):
        ml.tree_map(np.testing.assert_array_equal, *pair)


# ------------------------------------------------------------------------------------------------------------- descent


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decay", [0.0, 0.1, [0.1, 0.0, 0.3]])
def test_adamw_in_place_gives_every_bit_of_adamw(dtype, decay):
    rng = np.random.default_rng(0)
    params = [rng.standard_normal(shape).astype(dtype) for shape in [(3, 40_000), (7,), ()]]
    own, memory = _own_copy(params), _own_copy(ml.adamw_init(params))
    expected, state = params, ml.adamw_init(params)
    for step in range(1, 4):
        gradient = [np.asarray(rng.standard_normal(p.shape), dtype) for p in params]
        options = {"learning_rate": 0.1 / step, "weight_decay": decay}
        expected, state = ml.adamw_step(expected, gradient, state, **options)
        memory = _adamw_in_place(own, gradient, memory, **options)
    assert memory["step"] == state["step"]
    for ours, theirs in [(own, expected), (memory["mean"], state["mean"]), (memory["square"], state["square"])]:
        ml.tree_map(np.testing.assert_array_equal, ours, theirs)


def test_workers_descend_together_to_the_bits_of_one_worker():
    model = ml.Transformer(ml.llama_config(vocabulary=13, width=32, layers=2, heads=4, hidden=80))
    start = ml.training_state(model.init(np.random.default_rng(0), np.float32), np.random.default_rng(1))
    stream = np.random.default_rng(2).integers(13, size=500)

    def loss(params, batch):
        return ml.cross_entropy(model(params, batch.inputs), batch.targets)

    def plain_step(*args, **options):  # not the optimiser that the loop knows how to overwrite
        return ml.adamw_step(*args, **options)

    states = [
        ml.train(start, loss, lambda rng: ml.random_batch(stream, 6, 20, rng), 5, learning_rate=1e-2, workers=2,
                 step=step)[0]
        for step in (ml.adamw_step, plain_step)
    ]  # fmt: skip
    ml.tree_map(np.testing.assert_array_equal, states[0].params, states[1].params)
