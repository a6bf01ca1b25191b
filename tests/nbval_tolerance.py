"""nbval compares what a cell with `:tolerance:` shows within it; what other cells show, exactly. A plugin of pytest."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import tolerance


class Text(str):
    """A text of an output, which equals another one if they agree within the tolerance of its cell."""

    __hash__ = str.__hash__

    def __new__(cls, text, option):
        self = super().__new__(cls, text)
        self.option = option
        return self

    def __eq__(self, other):
        return tolerance.agree(self, other, self.option)

    def __ne__(self, other):
        return not self == other


def pytest_configure(config):
    from nbval.plugin import IPyNbCell

    if hasattr(IPyNbCell, "exact"):
        return
    IPyNbCell.exact = IPyNbCell.sanitize

    def sanitize(self, text):
        text, option = self.exact(text), self.cell.metadata.get("tolerance")
        return Text(text, option) if option and isinstance(text, str) else text

    IPyNbCell.sanitize = sanitize
