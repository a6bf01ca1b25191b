"""What the grader's tests share."""

import numpy as np
import pytest
from mathllm_exercises import report
from mathllm_grading import sandbox


@pytest.fixture(autouse=True)
def the_same_cases(monkeypatch):
    """check() draws other cases each time; under test, the same ones."""
    monkeypatch.setattr(report, "_generator", lambda: np.random.default_rng(0))


@pytest.fixture(scope="session")
def sandboxed():
    """The sandbox works here, or the tests that run submissions in it are skipped."""
    if reason := sandbox.problem():
        pytest.skip(f"NO SUBMISSION WAS RUN: {reason}")
