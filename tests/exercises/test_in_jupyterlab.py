"""A learner and an instructor in JupyterLab as `make lab` starts it, in a real browser, from the chapter to the score.

One server serves both, in a folder with one chapter and one assignment. The tests are the stations of one journey, in
this order; each says what a person at the screen would see.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import pytest
from grading import PATH, ROOT, make_course
from lab import CHANGED, assignments, cell, click_and_read, is_up, numbers, open_notebook, run, window
from mathllm_exercises import item, items
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = pytest.mark.slow

NAME = "01_vectors"
NORM = "01-vectors-norm"
TOKEN = "a-token-of-this-test"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the server shows: a chapter, and a course with one assignment."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / f"{NAME}.ipynb", folder / "notebooks")
    (folder / "exercises").mkdir()
    make_course(folder / "exercises", NAME)
    return folder


@pytest.fixture(scope="module")
def address(folder, tmp_path_factory):
    """JupyterLab with the settings of `make lab`, and nothing of this account's own; it looks for a port itself."""
    home, exchange = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("exchange")
    exchange.chmod(0o1777)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--port=0", "--KernelManager.transport=ipc"]
    command += [f"--ServerApp.root_dir={folder}", f"--IdentityProvider.token={TOKEN}"]
    log = home / "log"
    # The names of sockets have to be short; a kernel that ends late may still write into their folder.
    short = tempfile.TemporaryDirectory(prefix="mathllm-", dir="/tmp", ignore_cleanup_errors=True)
    with log.open("w") as out, short as runtime:
        environment = os.environ | {
            "HOME": str(home), "IPYTHONDIR": str(home / "ipython"), "JUPYTER_CONFIG_DIR": str(home / "config"),
            "JUPYTER_DATA_DIR": str(home / "data"), "JUPYTER_RUNTIME_DIR": runtime, "PATH": PATH,
            "JUPYTER_CONFIG_PATH": f"{ROOT / 'tools' / 'jupyter'}{os.pathsep}{folder / 'exercises'}",
            "MATHLLM_EXCHANGE": str(exchange),
        }  # fmt: skip
        with subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out) as server:
            try:
                yield _address(server, Path(runtime, f"jpserver-{server.pid}.json"), log)
            finally:
                server.terminate()


def _address(server, about, log):
    """Where the server answers, which it writes into a file."""
    for _ in range(1200):
        assert server.poll() is None, log.read_text()
        with contextlib.suppress(OSError, ValueError):  # not written, not whole
            address = f"http://127.0.0.1:{json.loads(about.read_text())['port']}"
            if is_up(f"{address}/api"):
                return address
        time.sleep(0.5)
    raise AssertionError(f"JupyterLab does not answer: {log.read_text()}")


@pytest.fixture(scope="module")
def page(browser, address):
    """One window for the whole journey; at its end, no other server was asked and no script has failed."""
    with window(browser, address) as page:
        page.goto(f"{address}/lab?token={TOKEN}")
        yield page


def open_unchanged(page, address, path):
    """Open a notebook alone; that alone must not count as a change."""
    open_notebook(page, address, path)
    page.locator(CHANGED).wait_for(state="detached")


@pytest.mark.nightly  # by day test_widgets.py moves every figure, and the assignment below opens unchanged
def test_a_chapter_opens_unchanged_and_its_figure_moves(page, address, folder):
    path = f"notebooks/{NAME}.ipynb"
    where, _ = numbers(folder / path)
    open_unchanged(page, address, path)
    cell(page, where["01-setup"]).locator(".jp-RenderedSVG img").wait_for()  # drawn, before any cell has run
    figure = run(page, where["01-length-widget"]).locator(".mathllm-widget")
    page.locator(CHANGED).wait_for()
    slider = figure.locator("input[type=range]").first
    before = figure.inner_text()
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("([figure, before]) => figure.innerText !== before", arg=[figure.element_handle(), before])


def test_the_instructor_releases_and_the_learner_fetches(page, address, folder):
    page.goto(f"{address}/formgrader/manage_assignments")
    row = page.locator("tbody tr", has_text=NAME)
    assert "Successfully created" in click_and_read(page, row.locator("td.assign a"))
    assert "Successfully released" in click_and_read(page, row.locator("td.release a"))
    listed = assignments(page, address)
    listed.get_by_text("Fetch", exact=True).click()
    listed.get_by_text("Submit", exact=True).wait_for()
    assert (folder / NAME / f"{NAME}.ipynb").exists()


def test_check_names_the_mistake_and_then_is_content(page, address, folder):
    where, _ = numbers(folder / NAME / f"{NAME}.ipynb")
    _, answers = numbers(folder / "exercises" / "source" / NAME / f"{NAME}.ipynb")
    open_unchanged(page, address, f"{NAME}/{NAME}.ipynb")
    run(page, 1)
    run(page, where[f"{NORM}-answer"], "def norm(x):\n    return np.sum(x * x, axis=-1)")
    report = run(page, where[NORM]).locator(".mathllm-report")
    report.get_by_text("the square root is missing").wait_for()
    run(page, where[f"{NORM}-answer"], answers[f"{NORM}-answer"])
    run(page, where[NORM]).locator(".mathllm-pass").wait_for()


def test_an_answer_is_begun_anew_and_then_given_again(page, folder):
    where, _ = numbers(folder / NAME / f"{NAME}.ipynb")
    original = nbformat.read(folder / NAME / f"{NAME}.ipynb", 4).cells[where[f"{NORM}-answer"]].source
    _, answers = numbers(folder / "exercises" / "source" / NAME / f"{NAME}.ipynb")
    answer = run(page, where[f"{NORM}-answer"], 'start_again("01.vectors.norm")')
    answer.locator(".cm-line", has_text="your code here").wait_for()
    assert answer.locator(".cm-line").all_inner_texts() == original.splitlines()
    run(page, where[f"{NORM}-answer"], answers[f"{NORM}-answer"])
    run(page, where[NORM]).locator(".mathllm-pass").wait_for()


@pytest.mark.nightly
def test_validate_says_what_is_missing(page):
    page.get_by_role("button", name="Validate").click()
    dialog = page.locator(".jp-Dialog")
    dialog.get_by_text("Validation Results").wait_for()
    text = dialog.inner_text()
    assert "0 of 2 points\n  no answer yet" in text
    assert '"01.vectors.distance"' in text
    assert '"01.vectors.norm"' not in text
    assert "Partial credit" not in text
    dialog.get_by_role("button", name="Ok").click()


@pytest.mark.nightly
@pytest.mark.usefixtures("sandboxed")
def test_what_was_handed_in_is_graded_and_its_formulas_are_shown(page, address):
    listed = assignments(page, address)
    listed.get_by_text("Submit", exact=True).click()
    listed.get_by_text("Fetch Feedback", exact=True).wait_for()
    page.goto(f"{address}/formgrader/manage_assignments")
    click_and_read(page, page.locator("tbody tr", has_text=NAME).locator("td.collect a"))
    page.goto(f"{address}/formgrader/manage_submissions/{NAME}")
    assert "Successfully autograded" in click_and_read(page, page.locator("tbody td.autograde a"))
    page.goto(f"{address}/formgrader/gradebook/{NAME}/{NAME}")
    row = page.locator("tbody tr", has_text="Submission #1")
    points, of = item("01.vectors.norm").points, sum(entry.points for entry in items("01") if entry.graded)
    assert f"{points:g} / {of:g}" in row.inner_text()
    row.locator("a").first.click()
    score = page.locator(f"[id='{NORM}']")
    score.wait_for()
    page.wait_for_function("field => field.value || field.placeholder", arg=score.element_handle())
    assert float(score.input_value() or score.get_attribute("placeholder")) == points
    assert page.locator("math").count() > 10
    assert page.locator("script[src*='mathjax' i]").count() == 0


@pytest.mark.nightly
def test_the_lines_of_an_order_are_taken_at_the_keyboard_and_the_letters_are_checked(page, address, folder):
    order = next(entry for entry in items() if entry.kind == "order")
    sources = ["from mathllm_exercises import arrange, check", f'arrange("{order.id}")\n{order.answer} = ...',
               f'check("{order.id}", {order.answer})']  # fmt: skip
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources], metadata=kernel)
    nbformat.write(notebook, folder / "order.ipynb")
    open_unchanged(page, address, "order.ipynb")
    run(page, 0)
    lines = run(page, 1).get_by_role("group", name=order.title)
    for label in order.expected().split():
        lines.get_by_role("button", name=f"Take line {label}", exact=True).press("Enter")
    written = lines.get_by_role("textbox", name="Write this into the answer cell").input_value()
    assert written == f'{order.answer} = "{order.expected()}"'
    assert lines.locator("math").first.is_visible()
    run(page, 1, written)
    run(page, 2).locator(".mathllm-pass").wait_for()
