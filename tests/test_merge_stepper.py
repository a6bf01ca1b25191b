"""The figure of chapter 13 learns the merges that mathllm learns, whatever the words and the rule for ties."""

import numpy as np
import pytest
import traitlets
from test_widgets import run_js

import mathllm as ml
from mathllm.figures.widgets import MergeStepper

CORPORA = [*MergeStepper().corpora.values()]


def random_words():
    rng = np.random.default_rng(2)
    for _ in range(25):
        words = {"".join(rng.choice(list("abc"), size=rng.integers(1, 8))): int(rng.integers(1, 5)) for _ in range(5)}
        yield words


@pytest.mark.parametrize("ties", ["first appearance", "lexicographic"])
def test_the_figure_learns_the_merges_of_mathllm(ties):
    tables = [*CORPORA, *random_words()]
    found = run_js("merge_stepper.js", "run", [[words, ties] for words in tables])
    for words, states in zip(tables, found, strict=True):
        assert [tuple(state["pairs"][0]) for state in states[:-1]] == ml.learn_merges(words, ties=ties)


def test_the_figure_joins_overlapping_pairs_from_the_left():
    cuts = [["a"] * n for n in range(1, 8)]
    joined = run_js("merge_stepper.js", "join", [[symbols, "a", "a"] for symbols in cuts])
    assert joined == [ml.training.apply_merges("a" * n, {("a", "a"): 0}) for n in range(1, 8)]


def test_the_figure_refuses_what_it_cannot_show():
    with pytest.raises(ValueError, match="MergeStepper needs words"):
        MergeStepper(words={})
    with pytest.raises(traitlets.TraitError, match="first appearance"):
        MergeStepper(ties="by chance")
