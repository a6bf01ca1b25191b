"""What all tests share: real data and a browser; what is absent says so."""

import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from real_data import absence, absence_for

from mathllm import data

PATIENCE = 600  # seconds: a busy machine may need many for what takes one or two


def pytest_configure(config):
    """What runs here, in however many processes, depends on no account's settings and waits for nobody's files.

    Jupyter and IPython find no settings. Each process has a history of its own: two that write to one wait for each
    other. matplotlib has its list of fonts: where making it takes long, it says so, and a notebook would show that.
    Kernels are reached through files: two of them cannot want the same port. (For `make parity`, which has no notebook,
    nothing of this is installed.)
    """
    examples = 40 if "not nightly" in config.option.markexpr else 100
    # The same examples on every machine, however busy it is.
    options = {"deadline": None, "derandomize": True, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("book", max_examples=examples, **options)
    settings.load_profile("book")
    if not config.pluginmanager.hasplugin("nbval"):
        return
    import matplotlib.font_manager  # this makes the list of fonts, if there is none yet

    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="mathllm-")
        config.add_cleanup(folder.cleanup)
        os.environ |= {"JUPYTER_CONFIG_DIR": folder.name, "MPLCONFIGDIR": matplotlib.get_cachedir()}
    worker = os.environ.get("PYTEST_XDIST_WORKER", "ipython")
    os.environ["IPYTHONDIR"] = os.path.join(os.environ["JUPYTER_CONFIG_DIR"], worker)
    if config.getoption("nbval", default=False):
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
        import nbval.kernel
        import nbval_tolerance
        from kernel_managers import KernelManager

        nbval.kernel.KernelManager = KernelManager
        nbval_tolerance.pytest_configure(config)
        config.option.nbval_kernel_startup_timeout = PATIENCE


@pytest.fixture
def needs():
    """`needs("glove")` gives the folder of that data package, or skips the test and says how to get it."""

    def need(name):
        if reason := absence(name):
            pytest.skip(reason)
        return data.path(name)

    return need


@pytest.fixture
def rng():
    """Random numbers for the figures, the same in each test."""
    return np.random.default_rng(1)


@pytest.fixture
def shell():
    """IPython, as in a notebook but without a history, and gone afterwards."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    yield InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    InteractiveShell.clear_instance()


@pytest.fixture(scope="session")
def browser():
    """Chromium, or the tests that need it are skipped."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("NO PAGE WAS OPENED: no Chromium is installed (Debian: apt install chromium)")
    import formulas
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=formulas.FLAGS, timeout=1000 * PATIENCE)
        yield browser
        browser.close()


def pytest_report_header():
    missing = [name for name in data.packages() if absence(name)]
    return f"real data: {'absent: ' + ', '.join(missing) if missing else 'all here'} (in {data.folder()})"


def code(item):
    """The code of a docstring's examples, or of the notebook a cell belongs to."""
    if isinstance(item, pytest.DoctestItem):
        return "".join(example.source for example in item.dtest.examples)
    if hasattr(item.parent, "nb"):
        return "\n".join(cell.source for cell in item.parent.nb.cells if cell.cell_type == "code")
    return ""


def pytest_collection_modifyitems(items):
    """A docstring or a notebook that asks `available("glove")` shows something else where GloVe is absent."""
    reason_for = functools.cache(absence_for)  # the cells of a notebook have one answer
    for item in items:
        if hasattr(item, "output_timeout"):  # nbval's own, for what a cell puts out last
            item.output_timeout = PATIENCE
        if reason := reason_for(code(item)):
            item.add_marker(pytest.mark.skip(reason=reason))
