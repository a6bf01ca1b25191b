"""Listings in a chapter are the package's own source, the same on every machine."""

import functools
import inspect

import pytest
from IPython.utils.capture import capture_output

from mathllm import errors
from mathllm.figures.notebook import live_curve, show_source
from mathllm.training import TrainingProgress


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorated
def double(x):
    """Twice x."""
    y = 2 * x

    def pullback(dy):
        """Back."""
        return (2 * dy,)

    return y, pullback


@pytest.fixture
def shown(shell):
    def run(*args, **kwargs):
        with capture_output() as captured:
            show_source(*args, **kwargs)
        [output] = captured.outputs
        return output.data

    return run


@pytest.mark.parametrize("thing", [errors.suggest, errors.ShapeError])
def test_the_listing_is_the_source_and_names_the_file_within_the_package(shown, thing):
    data = shown(thing)
    assert data["text/plain"] == "# mathllm/errors.py\n" + inspect.getsource(thing).rstrip()
    assert data["text/markdown"] == f"```python\n{data['text/plain']}\n```"


def test_a_decorated_function_is_shown_as_it_is_written(shown):
    listing = shown(double)["text/plain"]
    assert "@decorated\ndef double(x):" in listing
    assert "def pullback(dy):" in listing
    assert "wrapper" not in listing


def test_docstrings_can_be_left_out(shown):
    listing = shown(double, docstring=False)["text/plain"]
    assert "Twice x." not in listing
    assert "Back." not in listing
    assert "    y = 2 * x" in listing


@pytest.mark.parametrize("thing", [len, 3, "text"])
def test_what_has_no_python_source_is_refused(thing):
    with pytest.raises(ValueError, match="no Python source"):
        show_source(thing)


def test_a_live_curve_leaves_the_same_line_however_long_the_run_was(shell):
    left = []
    for steps in (1, 4):
        with capture_output() as captured, live_curve(every=2, seconds=0) as progress:
            for step in range(1, steps + 1):
                progress(TrainingProgress(step, steps, 2.5 / step, 0.1, None, 2.0 if step > 1 else None, 100.0, 1.0))
        pictures = [output.data for output in captured.outputs]
        assert sum("image/png" in data for data in pictures) == steps // 2
        left.append((pictures[0], pictures[-1]))
    assert len({str(line) for pair in left for line in pair}) == 1
