"""The figure of chapter 7 computes entropies and divergences as mathllm does, in either unit."""

import numpy as np
import pytest
import traitlets
from test_widgets import SAME, run_js

import mathllm as ml
from mathllm.figures.widgets import TwoDistributions

BASES = (np.e, 2.0)


@pytest.fixture
def pairs():
    """Pairs of weights for three words, a certain outcome among the first of them."""
    weights = np.random.default_rng(1).uniform(0.1, 10, size=(2, 60, 3))
    weights[0, 0] = [0, 10, 0]
    return weights


def normalized(weights):
    return weights / weights.sum(axis=-1, keepdims=True)


def test_weights_become_probabilities(pairs):
    ours = run_js("two_distributions.js", "normalized", [[w] for w in pairs[0].tolist()])
    np.testing.assert_allclose(ours, normalized(pairs[0]), rtol=SAME)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    ("name", "function"), [("crossEntropy", ml.cross_entropy_between), ("klDivergence", ml.kl_divergence)]
)
def test_the_bars_are_those_of_mathllm(pairs, name, function, base):
    p, q = normalized(pairs)
    shown = run_js("two_distributions.js", name, [[a, b, base] for a, b in zip(p.tolist(), q.tolist(), strict=True)])
    np.testing.assert_allclose(shown, function(p, q, base=base), rtol=0, atol=SAME * 10)


@pytest.mark.parametrize("base", BASES)
def test_entropy_and_perplexity_are_those_of_mathllm(pairs, base):
    p = normalized(pairs[0])
    H = run_js("two_distributions.js", "entropy", [[a, base] for a in p.tolist()])
    np.testing.assert_allclose(H, ml.entropy(p, base=base), rtol=0, atol=SAME * 10)
    choices = run_js("two_distributions.js", "perplexity", [[h, base] for h in H])
    np.testing.assert_allclose(choices, ml.perplexity(np.array(H), base=base), rtol=SAME * 10)


def test_probability_zero_for_what_happens_costs_infinitely_much():
    for name in ("crossEntropy", "klDivergence"):
        assert run_js("two_distributions.js", name, [[[0.5, 0.5, 0], [1, 0, 0]]]) == [None]  # JSON has no infinity
        assert run_js("two_distributions.js", name, [[[1, 0, 0], [0.5, 0.5, 0]]])[0] == pytest.approx(np.log(2))


def test_the_last_weight_does_not_go_to_zero():
    assert run_js("two_distributions.js", "changed", [[[0, 3, 0], 1, 0], [[1, 3, 0], 1, 0]]) == [[0, 3, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"p": [1, 2]}, ValueError),
        ({"q": [0, 0, 0]}, ValueError),
        ({"q": [-1, 1, 1]}, traitlets.TraitError),
        ({"unit": "dits"}, traitlets.TraitError),
    ],
)
def test_the_figure_refuses_what_is_no_distribution(settings, error):
    with pytest.raises(error):
        TwoDistributions(**settings)
