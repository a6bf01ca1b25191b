"""The figures of chapter 10: every matrix is that of mathllm, and the rotated score depends on the distance alone."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml
from mathllm.figures.widgets import AttentionStepper, RotaryPair

MASKS = {"none": None, "causal": ml.causal_mask(4), "window": ml.sliding_window_mask(4, 2)}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("scaled", [True, False])
def test_every_matrix_of_the_figure_is_that_of_mathllm(mask, scaled):
    rng = np.random.default_rng(1)
    cases = [[*(rng.normal(size=(4, 3)).tolist() for _ in range(3)), mask, scaled] for _ in range(10)]
    shown = run_js("attention_stepper.js", "attention", cases)
    for (query, key, value, *_), ours in zip(cases, shown, strict=True):
        query, key = np.array(query), np.array(key)
        scale = 1 / np.sqrt(3) if scaled else 1.0
        weights = ml.attention_weights(query, key, MASKS[mask], scale=scale)
        np.testing.assert_allclose(ours["raw"], query @ key.T, atol=SAME)
        np.testing.assert_allclose(ours["scores"], scale * query @ key.T, atol=SAME)
        np.testing.assert_allclose(ours["weights"], weights, atol=SAME)
        output = ml.attention(query, key, value, MASKS[mask], scale=scale)
        np.testing.assert_allclose(ours["output"], output, atol=SAME)


def test_the_first_example_is_explained_in_words():
    three = AttentionStepper().examples[0]
    lines = run_js("attention_stepper.js", "words", [[step, 0, three, "none", True] for step in (1, 4, 5)])
    assert lines[0][0] == "with key “1”: 1·1 + 0·1 = 1"
    assert lines[1][1].endswith("= 0.401")
    assert lines[2][-1] == "= [6.02, 3.98]"


def test_a_masked_key_is_named_in_words():
    three = AttentionStepper().examples[0]
    (lines,) = run_js("attention_stepper.js", "words", [[3, 0, three, "causal", True]])
    assert ["masked" in line for line in lines] == [False, True, True]


def test_an_example_without_values_ends_with_the_weights():
    cat = AttentionStepper().examples[1]
    (ours,) = run_js("attention_stepper.js", "attention", [[cat["query"], cat["key"], [], "none", True]])
    np.testing.assert_allclose(ours["weights"], ml.attention_weights(cat["query"], cat["key"]), atol=SAME)
    assert ours["output"] is None


def test_the_rotated_score_is_that_of_rotate():
    rng = np.random.default_rng(2)
    cases = [[*rng.normal(size=(2, 2)).tolist(), *rng.integers(0, 31, 2).tolist(), rng.uniform()] for _ in range(50)]
    for (query, key, m, n, rate), score in zip(cases, run_js("rotary_pair.js", "score", cases), strict=True):
        a, b = (ml.rotate(np.array([x]), angles=np.array([[t * rate]]))[0] for x, t in ((query, m), (key, n)))
        assert score == pytest.approx(a @ b, abs=SAME)


SHORT = {"name": "short", "tokens": ["a", "b"], "query": [[1.0]], "key": [[1.0], [2.0]], "value": []}


@pytest.mark.parametrize(
    ("figure", "wrong", "words"),
    [
        (AttentionStepper, {"examples": [SHORT]}, "one row per token"),
        (AttentionStepper, {"row": 3}, "no row 3"),
        (RotaryPair, {"query_position": 31}, "query_position"),
    ],
)
def test_the_figures_refuse_what_they_cannot_show(figure, wrong, words):
    with pytest.raises(Exception, match=words):
        figure(**wrong)
