"""A notebook that misbehaves, seen by the step that runs it: limits hold, and what was earned before stays earned."""

import pytest
from grading import NORM, graded, run
from mathllm_exercises import item

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

LEAVES = "import sys\nsys.exit(0)"
FLOODS = "for _ in range(300):\n    print('x' * 100_000)"
STUBBORN = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"


@pytest.mark.nightly
def test_a_loop_that_ignores_interrupts_ends_with_its_notebook_and_loses_nothing_before_it(monkeypatch):
    monkeypatch.setenv("MATHLLM_COURSE_KEY", "k" * 32)
    cells = [NORM, LEAVES, FLOODS, graded("01.vectors.norm"), STUBBORN, graded("01.vectors.distance")]
    result = run(*cells, output=1_000_000, cell_seconds=20)
    assert result.points[0] > 0
    assert result.points[1] == 0.0
    assert list(result.review) == ["01-vectors-distance"]
    assert 900_000 < len(result.texts[2]) <= 1_000_000  # of the 30 million printed
    assert "MATHLLM_COURSE_KEY" not in str(result)


def test_a_loop_is_interrupted_and_a_process_that_ends_costs_only_what_comes_after():
    loop, exit = "while True: pass", "import os; os._exit(0)"
    cells = [NORM, loop, graded("01.vectors.norm"), exit, graded("01.vectors.distance")]
    result = run(*cells, cell_seconds=6)
    assert result.texts[1] == "KeyboardInterrupt"
    assert result.points == [item("01.vectors.norm").points, 0.0]
    assert list(result.review) == ["01-vectors-distance"]


def test_a_notebook_has_its_time_and_what_comes_later_is_not_run():
    sleeps = "import time; time.sleep(2)"
    result = run(NORM, graded("01.vectors.norm"), sleeps, graded("01.vectors.distance"), notebook_seconds=2)
    assert result.points == [item("01.vectors.norm").points, 0.0]
    assert result.review == {"01-vectors-distance": "the notebook took more than 2 seconds"}


def test_the_learners_process_knows_the_learner_and_not_the_course_key(monkeypatch):
    monkeypatch.setenv("MATHLLM_COURSE_KEY", "k" * 32)
    code = "import os\nfrom mathllm_exercises import learner\nprint(learner(), os.environ.get('MATHLLM_COURSE_KEY'))"
    assert run(code).texts == ["ada None\n"]
