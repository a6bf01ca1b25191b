"""The figure of chapter 15 shows the policy that kl_optimal_policy() finds, and its divergence and rewards."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml
from mathllm.figures.widgets import KLPenalty

rng = np.random.default_rng(15)
SETTINGS = [
    (rng.dirichlet(np.ones(n)), rng.normal(size=n) * 3, rng.normal(size=n), float(beta))
    for n in (2, 4, 7)
    for beta in 10 ** rng.uniform(-1, 1, size=20)
]


def test_the_bars_are_the_best_policy():
    shown = run_js("kl_penalty.js", "optimum", [[p.tolist(), reward.tolist(), beta] for p, reward, _, beta in SETTINGS])
    for (p, reward, _, beta), bars in zip(SETTINGS, shown, strict=True):
        np.testing.assert_allclose(bars, ml.alignment.kl_optimal_policy(p, reward, beta=beta), atol=SAME)


def test_the_curves_are_divergence_reward_and_true_reward():
    arguments = [[p.tolist(), reward.tolist(), truth.tolist(), [beta, 1.0]] for p, reward, truth, beta in SETTINGS]
    for (p, reward, truth, beta), points in zip(SETTINGS, run_js("kl_penalty.js", "path", arguments), strict=True):
        for coefficient, point in zip([beta, 1.0], points, strict=True):
            best = ml.alignment.kl_optimal_policy(p, reward, beta=coefficient)
            expected = [ml.kl_divergence(best, p), best @ reward, best @ truth]
            np.testing.assert_allclose(point, expected, atol=1e-11)  # sums of up to seven terms of size 20


def test_a_reward_a_thousand_times_beta_overflows_nothing():
    (bars,) = run_js("kl_penalty.js", "optimum", [[[0.5, 0.5], [1000.0, 0.0], 0.1]])
    assert bars == [1, 0]


def test_with_the_numbers_of_the_figure_the_reward_rises_as_beta_falls_and_the_true_reward_turns():
    figure = KLPenalty()
    reference, reward, truth = (np.array(values) for values in (figure.reference, figure.reward, figure.true_reward))
    policies = [ml.alignment.kl_optimal_policy(reference, reward, beta=beta) for beta in np.geomspace(10, 0.1, 50)]
    assert np.all(np.diff([p @ reward for p in policies]) > 0)
    worth = np.array([p @ truth for p in policies])
    assert 5 < worth.argmax() < 45
    assert worth[-1] < worth[0] < worth.max() - 0.3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"answers": ["a", "b"]}, "answers 2, reference 4"),
        ({"reference": [0.5, 0.3, 0.2, 0.1]}, "distribution"),
        ({"reference": [0.5, 0.3, 0.2, 0.0]}, "without zeros"),
    ],
)
def test_the_figure_refuses_what_it_cannot_draw(wrong, words):
    with pytest.raises(ValueError, match=words):
        KLPenalty(**wrong)
