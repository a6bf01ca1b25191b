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
    """The largest difference, relative to the largest entry of the peer (at least 10⁻³, so that a zero can agree).

    Infinities must stand in the same places, and a NaN agrees with nothing.
    """
    ours, theirs = (np.asarray(x, np.float64) for x in (ours, theirs))
    assert ours.shape == theirs.shape
    finite = np.isfinite(theirs)
    if not np.array_equal(ours[~finite], theirs[~finite]):
        return np.inf
    ours, theirs = ours[finite], theirs[finite]
    error = np.abs(ours - theirs).max(initial=0) / max(np.abs(theirs).max(initial=0), 1e-3)
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
    worst, allowed, methods = {}, {}, {}
    for what, method, error, within in config.stash[COMPARISONS]:
        methods[method] = None
        worst[what, method] = max(error, worst.get((what, method), 0))
        allowed[what] = max(within, allowed.get(what, 0))
    if worst:
        terminalreporter.section("worst disagreement with the peers")
        terminalreporter.write_line(f"{'':40}{''.join(f'{method:>20}' for method in methods)}{'allowed':>9}")
        for what, within in allowed.items():
            errors = [f"{worst[what, m]:20.0e}" if (what, m) in worst else " " * 20 for m in methods]
            terminalreporter.write_line(f"{what:40}{''.join(errors)}{within:9.0e}")
