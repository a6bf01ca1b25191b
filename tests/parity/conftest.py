"""What the comparisons share: one measure of disagreement, and a table of the worst ones at the end of a run.

The peers live in an environment of their own. Where they are missing, as in `make test`, this folder is left out.
"""

import importlib.util
from typing import NamedTuple

import numpy as np
import pytest

PEERS = ("torch", "transformers", "tokenizers")
if not all(map(importlib.util.find_spec, PEERS)):
    collect_ignore_glob = ["*.py"]


class Comparison(NamedTuple):
    what: str
    method: str
    error: float
    within: float


COMPARISONS = pytest.StashKey[list]()


def pytest_configure(config):
    config.stash[COMPARISONS] = []
    for category in ("DeprecationWarning", "FutureWarning", "PendingDeprecationWarning"):
        config.addinivalue_line("filterwarnings", f"ignore::{category}:(torch|transformers)")


def disagreement(ours, theirs):
    """The largest difference, relative to the largest entry of the peer (at least 10⁻², so that a zero can agree).

    Infinities must stand in the same places, and a NaN agrees with nothing.
    """
    ours, theirs = (np.asarray(x, np.float64) for x in (ours, theirs))
    assert ours.shape == theirs.shape
    finite = np.isfinite(theirs)
    if not np.array_equal(ours[~finite], theirs[~finite]):
        return np.inf
    ours, theirs = ours[finite], theirs[finite]
    error = np.abs(ours - theirs).max(initial=0) / max(np.abs(theirs).max(initial=0), 1e-2)
    return float(error) if np.isfinite(error) else np.inf


@pytest.fixture
def agree(pytestconfig):
    """`agree(what, method, ours, theirs, within=…)` holds our numbers against the peer's and notes how far apart."""

    def agree(what, method, ours, theirs, *, within):
        if hasattr(theirs, "detach"):
            assert ours.dtype.name == str(theirs.dtype).removeprefix("torch."), f"{what}: another dtype than the peer's"
            theirs = theirs.detach().numpy()
        error = disagreement(ours, theirs)
        pytestconfig.stash[COMPARISONS].append(Comparison(what, method, error, within))
        assert error <= within, f"{what}, {method}: {error:.1e} apart, where {within:.0e} is allowed"

    return agree


def pytest_terminal_summary(terminalreporter, config):
    worst = {}
    for what, method, error, within in config.stash[COMPARISONS]:
        row = worst.setdefault(what, {})
        row[method] = max(row.get(method, (0, 0)), (error, within))
    if worst:
        terminalreporter.section("worst disagreement with the peers ≤ what is allowed")
        for what, row in worst.items():
            errors = [f"{method} {error:.0e} ≤ {within:.0e}" for method, (error, within) in row.items()]
            terminalreporter.write_line(f"{what:41} {'  '.join(errors)}")
