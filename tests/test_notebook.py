"""What chapters show beside their own outputs. That a listing is the package's source, nbval proves in each chapter."""

import pytest
from IPython.utils.capture import capture_output

from mathllm.figures.notebook import live_curve, show_source
from mathllm.probability import Beta
from mathllm.training import TrainingProgress


def test_docstrings_within_a_listing_can_be_left_out(capsys):
    show_source(Beta, docstring=False)
    listing = capsys.readouterr().out
    assert "    def density(self, theta: ArrayLike) -> np.ndarray:\n        theta = " in listing
    assert '"""' not in listing


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
