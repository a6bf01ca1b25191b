"""The built site and its pages, shared by all tests of this folder, and by the workers that run them."""

import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from package import ROOT

VENDOR = ROOT / ".cache" / "vendor"
PROGRAMS = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="session")
def build_site():
    """Runs tools/build_site.py of the project, or of a copy; what it said."""

    def build(*options, root=ROOT):
        command = [sys.executable, root / "tools" / "build_site.py", *options]
        return subprocess.run(command, capture_output=True, text=True)

    return build


@pytest.fixture(scope="session")
def site(request, tmp_path_factory, build_site):
    """The folder of the site, built once from the committed notebooks; with the browser's edition if a test asks."""
    if shutil.which("npm") is None and not (VENDOR / "stamp").exists():
        pytest.skip("THE SITE WAS NOT BUILT: npm is not installed (Debian: apt install npm)")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "site").exists():
            options = ["--lite"] if _lite_is_wanted(request.session) and _lite_is_set_up(shared / "reason") else []
            done = build_site("--output", shared / "site", *options)
            assert done.returncode == 0, done.stderr
    return shared / "site"


def _lite_is_wanted(session):
    return any("lite" in item.fixturenames for item in session.items if hasattr(item, "fixturenames"))


def _lite_is_set_up(reason):
    """Whether its environment could be made; if not, the file `reason` says why."""
    made = subprocess.run(["sh", ROOT / "tools" / "set_up_lite.sh"], env=PROGRAMS, capture_output=True, text=True)
    reason.write_text(made.stderr, encoding="utf-8")
    return made.returncode == 0


@pytest.fixture(scope="session")
def edition(site, browser, tmp_path_factory):
    """A file of the first two chapters: "pdf" or "epub". (The site has fetched, the browser is there.)"""

    @functools.cache
    def make(kind):
        output = tmp_path_factory.mktemp("edition") / f"book.{kind}"
        command = [sys.executable, ROOT / "tools" / "build_editions.py", kind, "--output", output]
        done = subprocess.run([*command, "--chapters", "01", "02"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return output

    return make


@pytest.fixture(scope="session")
def lite(site):
    """The folder of the edition that runs in the browser."""
    if not (site / "lite").exists():
        reason = (site.parent / "reason").read_text(encoding="utf-8").strip()
        pytest.skip(f"THE EDITION IN THE BROWSER WAS NOT BUILT: {reason}")
    return site / "lite"


@pytest.fixture(scope="session")
def address(site):
    with pages.served(site) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@contextlib.contextmanager
def _window(browser, address):
    """A window that opens pages; at the end, none may have asked another server or reported an error."""
    with pages.window(browser, address) as (context, complain):
        context.on("console", lambda message: message.type != "error" or complain(f"error: {message.text}"))
        context.on("response", lambda answer: answer.status < 400 or complain(f"{answer.status} {answer.url}"))

        def open_page(name):
            page = context.new_page()
            page.goto(f"{address}/{name}", wait_until="load")
            page.wait_for_function("window.MathJax?.startup?.promise?.then(() => true) ?? true")  # formulas are set
            return page

        yield open_page


@pytest.fixture
def open_page(browser, address):
    """Opens a page with its formulas, in a window for one test."""
    with _window(browser, address) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def window(browser, address):
    """The same for the tests of a file: what one page has loaded, the next need not load."""
    with _window(browser, address) as open_page:
        yield open_page
