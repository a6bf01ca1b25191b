"""The scaling law on runs of our own: twelve tiny transformers on a source of known entropy, and one more foretold."""

import numpy as np
import pytest

import mathllm as ml

VOCABULARY, LENGTH, TEXTS = 32, 16, 32


def run(source, held_out, width, steps):
    """A transformer that reads every text once: its parameters, its tokens, and its loss on texts it has not seen."""
    config = ml.llama_config(
        vocabulary=VOCABULARY, width=width, layers=1, heads=1, hidden=2 * width, context=LENGTH, positions="none"
    )
    model, rng = ml.Transformer(config), np.random.default_rng(1)
    wider = lambda w: w if w.ndim == 1 else w * np.float32(0.5 / (len(w) ** 0.5 * w.std()))  # noqa: E731
    start = ml.tree_map(wider, model.init(rng, np.float32))
    texts = ml.sample_markov_chain(source, steps * TEXTS * LENGTH, rng).reshape(steps, TEXTS, -1)
    params = ml.gradient_descent.minimize(
        model.loss,
        start,
        zip(texts, texts, strict=True),  # the tokens are their own labels
        learning_rate=lambda step: 0.02 * (1 - (step - 1) / steps),
        init=ml.adam_init,
        step=ml.adam_step,
    )
    return ml.count_parameters(params), steps * TEXTS * LENGTH, float(model.loss(params, held_out, held_out))


@pytest.mark.nightly
def test_a_law_fitted_to_small_runs_foretells_a_larger_one():
    rng = np.random.default_rng(0)
    source = rng.dirichlet(np.full(VOCABULARY, 0.3), size=VOCABULARY)
    held_out = ml.sample_markov_chain(source, 16_000, rng).reshape(-1, LENGTH)
    runs = [run(source, held_out, width, steps) for width in (4, 8, 16, 24) for steps in (50, 100, 200)]
    parameters, tokens, losses = map(np.array, zip(*runs, strict=True))
    grid = losses.reshape(4, 3)
    assert np.all(np.diff(grid, axis=0) < 0)  # more parameters help, at every number of tokens
    assert np.all(np.diff(grid, axis=1) < 0)  # and more tokens at every number of parameters
    law = ml.scale.fit_scaling_law(parameters, tokens, losses)
    np.testing.assert_allclose(ml.scale.scaling_loss(parameters, tokens, law), losses, rtol=0.04)
    more = run(source, held_out, 32, 300)
    assert ml.scale.scaling_loss(*more[:2], law) == pytest.approx(more[2], rel=0.04)
    np.testing.assert_allclose(law.E, ml.training.entropy_rate(source), rtol=0.15)  # what no model can foresee
