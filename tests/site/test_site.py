"""The pages: complete, linked, readable by all, and they ask no other server."""

import contextlib
import functools
import gzip
import json
import re
import shutil
import subprocess
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import labels
import nbformat
import pytest
from mathllm_exercises import bank
from nbformat import v4
from package import ROOT
from playwright.sync_api import TimeoutError

from mathllm import reference

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
CHAPTERS = [name for name in NOTEBOOKS if not name.startswith("00_")]
FRONT = sorted(path.stem for path in (ROOT / "book").glob("*.md") if not path.name[0].isdigit())
PAGES = [f"{name}.html" for name in FRONT] + [f"notebooks/{name}.html" for name in NOTEBOOKS]
VENDOR = ROOT / ".cache" / "vendor"


# --- The pages as files


class Page(HTMLParser):
    """What a test asks of a page: its images, links, ids and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.images, self.links, self.ids, self.loads = [], [], set(), []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids |= {attributes[key] for key in ("id", "name") if attributes.get(key) and tag != "meta"}
        if tag == "img":
            self.images.append(attributes)
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag in ("script", "img", "iframe", "source", "video", "audio") and attributes.get("src"):
            self.loads.append(attributes["src"])
        if tag == "link" and attributes.get("href") and attributes.get("rel") != "canonical":
            self.loads.append(attributes["href"])


@functools.cache
def page_at(path):
    return Page(path)


def test_there_is_a_page_for_every_notebook_and_every_front_page_and_no_other(site):
    made = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    others = {"404.html", "search.html"}
    assert {name for name in made if not name.startswith(("_static/", "lite/"))} == {*PAGES} | others
    assert CHAPTERS


def test_the_first_page_lists_the_chapters_in_order_each_with_its_question_and_its_time(site):
    text = page_at(site / "index.html").text
    row = r'class="book-chapter" href="notebooks/([^"]+)\.html">[^<]+</a><p>[^<]{30,}\?</p><small>[^<]*(?:minutes|hour)'
    assert re.findall(row, text) == CHAPTERS


@pytest.mark.parametrize("name", CHAPTERS)
def test_equations_and_figures_have_the_numbers_on_the_site_that_they_have_in_the_notebook(site, name):
    page, counted = page_at(site / "notebooks" / f"{name}.html"), labels.numbered(ROOT / "book" / f"{name}.md")
    figures = [label for label in counted if label.startswith("fig-")]
    captions = re.findall(r"book-caption[^>]*>\s*<p><strong>Figure ([\d.]+)\.</strong>", page.text)
    assert captions == [counted[label].number for label in figures]
    assert {*figures} <= page.ids
    equations = [place.number for label, place in counted.items() if label not in figures]
    assert re.findall(r'<span class="eqno">\(([\d.]+)\)', page.text) == equations


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_all_formulas_and_figures_of_a_notebook_reach_its_page(site, name):
    cells = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    displayed = len(re.findall(r"^\$\$", re.sub(r"```.*?```", "", prose, flags=re.DOTALL), re.MULTILINE)) // 2
    page = page_at(site / "notebooks" / f"{name}.html")
    assert page.text.count('<div class="math notranslate nohighlight') >= displayed
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    stored = [output["metadata"].get(kind, {}).get("alt") for output in outputs
              for kind in ("image/svg+xml", "image/png") if kind in output.get("data", {})]  # fmt: skip
    assert [image["alt"] for image in page.images if "_images/" in image["src"]] == stored


def test_every_value_of_a_written_chapter_is_listed_with_its_verdict(site):
    text = page_at(site / "values.html").text
    rows = [row for name in CHAPTERS for row in reference.rows(name[:2])]
    computed = [row for row in rows if row.basis != "setting"]
    assert text.count("✓</p></td>") == sum(row.agrees for row in computed)
    assert text.count("✗ ") - 1 == sum(not row.agrees for row in computed)  # one more explains the sign
    assert text.count(reference.CHOICE) == len(rows) - len(computed)
    assert "(erratum D17)" in text


def test_every_erratum_is_explained_on_the_page_of_sources(site):
    text = page_at(site / "values.html").text
    errata = tomllib.loads((ROOT / "book" / "errata.toml").read_text(encoding="utf-8"))["erratum"]
    assert all(entry["says"] and entry["right"] and entry["source"] for entry in errata)
    codes = [entry["code"] for entry in errata]
    assert re.findall(r"<td><p>([A-E]\d+)</p></td>", text) == codes
    assert len({*codes}) == len(codes)
    assert {row.erratum for row in reference.rows() if row.erratum} <= {*codes}


def test_every_primitive_is_listed_with_the_errors_of_its_gradient_and_its_digits(site):
    text = page_at(site / "gradients_checked.html").text
    gradients, digits = (
        json.loads((ROOT / "book" / "_data" / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("gradients", "digits")
    )
    names = [row["name"] for row in gradients + digits]
    assert re.findall(r'<span class="pre">(\w+)</span></code></p></td>', text) == names
    assert text.count("<td><p>10⁻") >= 4 * len(gradients)
    assert len(re.findall(r"<td><p>\d+\.\d / \d+\.\d</p></td>", text)) == 3 * len(digits)


def test_every_question_that_a_cell_checks_stands_on_the_page_of_answers(site):
    asked = [record for record in bank.records() if ".quick_" in record["id"]]
    text = page_at(site / "answers.html").text.split("<article")[1]
    assert len(asked) > 50
    assert text.count("<li>") == 2 * len(asked)  # the question, and its answer
    assert text.count("<details") == len(CHAPTERS)


@pytest.mark.parametrize("name", PAGES)
def test_every_image_says_in_words_what_it_shows(site, name):
    for image in page_at(site / name).images:
        if "logo__image" in image.get("class", ""):  # it stands beside its text
            continue
        assert len(image.get("alt", "")) > 10, image["src"]
        assert not image["alt"].endswith((".png", ".svg")), image["src"]


@pytest.mark.parametrize("name", PAGES)
def test_all_links_within_the_book_lead_somewhere(site, name):
    broken = []
    for link in page_at(site / name).links:
        target = urlsplit(urljoin(f"http://book/{name}", link))
        if target.netloc != "book":
            continue
        path, anchor = site / unquote(target.path).lstrip("/"), unquote(target.fragment)
        if not path.is_file() or (anchor and path.suffix == ".html" and anchor not in page_at(path).ids):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_only_files_of_the_site(site, name):
    for address in page_at(site / name).loads:
        assert not urlsplit(address).netloc, address
        assert (site / name).parent.joinpath(unquote(urlsplit(address).path)).is_file(), address


@pytest.mark.parametrize("name", PAGES)
def test_a_page_describes_itself_to_search_engines_and_previews(site, name):
    text = page_at(site / name).text
    described = re.findall(r'<meta name="description" content="([^"]*)"', text)
    assert len(described) == 1
    assert 20 < len(described[0]) <= 210
    assert '<meta property="og:title" content="' in text
    assert "canonical" not in text  # the project has no address yet


def test_a_missing_page_leads_back_and_models_find_a_list_of_all_pages(site):
    assert "index.html" in page_at(site / "404.html").links
    listed = re.findall(r"\]\(([^)]*)\)", (site / "llms.txt").read_text(encoding="utf-8"))
    assert {*PAGES} == {*listed}
    assert not (site / "sitemap.xml").exists()


def test_no_page_tells_where_it_was_built(site):
    for name in PAGES:
        assert str(ROOT) not in page_at(site / name).text
        assert str(site) not in page_at(site / name).text


def test_the_linter_finds_a_name_that_is_never_used_but_nothing_in_our_scripts(site, tmp_path):
    """The linter came with the site."""
    linter = VENDOR / "lint" / "node_modules" / "oxlint" / "bin" / "oxlint"
    (tmp_path / "wrong.js").write_text('import { sum } from "./elements.js";\n')
    for paths, code in [([tmp_path], 1), (["mathllm/figures", "book/_static", "book/lite", "tools"], 0)]:
        done = subprocess.run(["node", linter, "--deny-warnings", *paths], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr


def test_what_npm_fetches_is_pinned_with_checksums_and_without_addresses():
    packages = json.loads((ROOT / "book" / "web" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    wanted = json.loads((ROOT / "book" / "web" / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert packages[""]["dependencies"] == wanted
    for name, package in packages.items():
        assert name == "" or package["integrity"].startswith("sha512-"), name
        assert "resolved" not in package, name


@pytest.mark.nightly
def test_a_figure_without_words_or_a_broken_link_stops_the_build_and_leaves_the_old_pages(site, build_site, tmp_path):
    shutil.copytree(ROOT / "book", tmp_path / "book", ignore=shutil.ignore_patterns("notebooks", "[0-9]*.md"))
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    shutil.copytree(VENDOR, tmp_path / ".cache" / "vendor")
    (tmp_path / "book" / "notebooks").mkdir()
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
    output = v4.new_output("display_data", {"image/png": pixel})
    cells = [v4.new_markdown_cell("# Vectors\n\n[Next](02_nowhere.ipynb)"), v4.new_code_cell("1", outputs=[output])]
    nbformat.write(v4.new_notebook(cells=cells), tmp_path / "book" / "notebooks" / "01_vectors.ipynb")
    old = tmp_path / "pages" / "index.html"
    old.parent.mkdir()
    old.write_text("old")

    done = build_site("--output", old.parent, root=tmp_path)

    assert done.returncode == 1
    where = "book/notebooks/01_vectors.ipynb, cell"
    assert re.search(f"{where} 1: WARNING: .* target not found: '02_nowhere.ipynb'", done.stderr)
    assert f"{where} 2: WARNING: a figure without alternative text" in done.stderr
    assert "Traceback" not in done.stderr
    assert old.read_text() == "old"
    assert sorted(path.name for path in (tmp_path / ".cache").iterdir()) == ["vendor"]


# --- The pages in a browser


def with_figures(page):
    """The page, once its images and figures are there."""
    page.evaluate("for (const image of document.images) image.loading = 'eager'")
    figures = page.locator('script[type="application/vnd.jupyter.widget-view+json"]')
    if figures.count():  # what draws them is loaded when the first comes near
        figures.first.locator("..").scroll_into_view_if_needed()
        page.locator(".widget-subarea").last.wait_for()
    page.wait_for_load_state("networkidle")
    return page


@pytest.fixture(scope="module")
def page(window, request):
    page = with_figures(window(request.param))
    yield page
    page.close()


@pytest.fixture(scope="module")
def softmax(window):
    """Chapter 6, a short one with all kinds of things on its page."""
    return with_figures(window("notebooks/06_softmax.html"))


def has_figure(name):
    return "application/vnd.jupyter.widget-view+json" in (ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8")


# Views of figures of the book; a text box or an output area of ipywidgets is none.
OUR_VIEWS = """() => {
  const state = JSON.parse(document.querySelector('script[type="application/vnd.jupyter.widget-state+json"]').text);
  const views = [...document.querySelectorAll('script[type="application/vnd.jupyter.widget-view+json"]')];
  const models = views.map((view) => state.state[JSON.parse(view.text).model_id]);
  return models.filter((model) => model.model_module === "anywidget").length;
}"""


def on_pages(*every_day):
    """The test runs on these pages every day and on all at night. Each page is opened once, for all such tests."""
    pages = [name if name in every_day else pytest.param(name, marks=pytest.mark.nightly) for name in PAGES]
    return pytest.mark.parametrize("page", pages, indirect=True)


OF_EACH_KIND = ["index.html", "answers.html", "notation.html", "other_libraries.html", "review.html"]
OF_EACH_KIND += ["notebooks/00_start.html", "notebooks/06_softmax.html"]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
BROKEN = """async (rules) => {
  const {violations} = await axe.run(document, {runOnly: rules, resultTypes: ["violations"]});
  return violations.flatMap(({id, nodes}) => nodes.map((node) => `${id}: ${node.target} ${node.html.slice(0, 120)}`));
}"""


@on_pages(*OF_EACH_KIND)
def test_a_page_opens_whole_asking_nobody_else_and_its_figures_move_without_a_kernel(page):
    page.wait_for_function("document.querySelectorAll('.math:not(:has(mjx-container))').length === 0")
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    assert [text for text in page.locator("mjx-assistive-mml mtext").all_text_contents() if "\\" in text] == []
    assert page.evaluate("[...document.images].filter(i => !(i.complete && i.naturalWidth)).map(i => i.src)") == []
    name = Path(urlsplit(page.url).path).stem
    if name in NOTEBOOKS and has_figure(name):
        move_figures(page)


def broken_rules(page, theme):
    """What axe-core finds of WCAG 2.2 AA."""
    page.add_style_tag(content="* { transition: none !important; }")  # a colour half-way has too little contrast
    page.emulate_media(color_scheme=theme)
    page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
    page.evaluate((VENDOR / "axe.js").read_text(encoding="utf-8"))
    return page.evaluate(BROKEN, RULES)


@on_pages("index.html", "answers.html", "notebooks/00_start.html", "notebooks/06_softmax.html")
def test_neither_the_light_nor_the_dark_page_breaks_a_rule_of_accessibility(page):
    assert broken_rules(page, "dark") == []
    assert broken_rules(page, "light") == []


@on_pages(*OF_EACH_KIND)
def test_a_page_with_all_that_is_folded_fits_a_telephone(page):
    page.set_viewport_size({"width": 390, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    with contextlib.suppress(TimeoutError):  # long formulas shrink after the page has; the width that stays is judged
        page.wait_for_function("document.documentElement.scrollWidth <= 390", timeout=30_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def move_figures(page):
    """Each figure appears and answers the keyboard."""
    figures = page.locator(".mathllm-widget")
    ours = page.evaluate(OUR_VIEWS)
    assert ours > 0
    figures.nth(ours - 1).wait_for()
    assert figures.count() == ours
    for figure in figures.all():
        assert figure.bounding_box()["height"] > 100
        for slider in figure.locator("input[type=range]").all():
            assert slider.evaluate("s => s.labels.length || s.ariaLabel"), "a slider without a label"
        slider = figure.locator("input[type=range]").first
        if slider.count():
            before = figure.inner_html()
            slider.focus()
            at_end = slider.evaluate("s => +s.value >= +s.max")
            page.keyboard.press("ArrowLeft" if at_end else "ArrowRight")
            page.wait_for_function("([e, before]) => e.innerHTML !== before", arg=[figure.element_handle(), before])
    assert page.locator(".mathllm-widget input[type=range]").count() > 0


FORMULAS = "[...document.querySelectorAll('div.math mjx-container[display]')]"
FITS = "(formula.scrollWidth <= formula.clientWidth + 1)"
SIZE = "parseFloat(getComputedStyle(formula).fontSize)"
STRAY_STOPS = """[...document.querySelectorAll('.bd-article span.math')].filter((formula) => {
  const text = formula.nextSibling;
  if (text?.nodeType !== 3 || !/^[.,;:!?)]/.test(text.data)) return false;
  const first = document.createRange();
  first.setStart(text, 0);
  first.setEnd(text, 1);
  return first.getBoundingClientRect().top > formula.getBoundingClientRect().bottom - 2;
}).length"""


SCROLLING_WITHOUT_NEED = """[...document.querySelectorAll('.bd-article span.math')].filter((formula) => {
  const shown = formula.querySelector("mjx-math")?.getBoundingClientRect().width;
  return formula.scrollWidth > formula.clientWidth && shown <= formula.clientWidth;
}).length"""
UNTOUCHED = """async () => {
  const formula = document.querySelector(".book-lines"), folded = document.querySelector(".bd-article details");
  formula.style.fontSize = "1px";
  await new Promise((done) => { folded.addEventListener("toggle", done); folded.open = true; });
  return formula.style.fontSize === "1px";
}"""


@pytest.fixture(scope="module", params=["10_attention", pytest.param("08_gradients", marks=pytest.mark.nightly)])
def long_chapter(window, request):
    return window(f"notebooks/{request.param}.html")


def test_a_chapter_weighs_less_than_a_megabyte_until_its_figures_come_near(site, long_chapter):
    long_chapter.wait_for_load_state("networkidle")
    asked = long_chapter.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
    files = {site / urlsplit(name).path.lstrip("/") for name in (long_chapter.url, *asked)}
    assert 300_000 < sum(len(gzip.compress(file.read_bytes())) for file in files) < 1_000_000  # as servers send them
    assert not any(file.name == "embed-amd.js" for file in files)


def test_on_a_telephone_long_formulas_shrink_or_break_and_no_line_begins_with_a_full_stop(long_chapter):
    page = long_chapter
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function(f"{FORMULAS}.every((formula) => {FITS} || {SIZE} < 14.1)")
    sizes = page.evaluate(f"{FORMULAS}.map((formula) => {SIZE})")  # in pixels; the short ones stay large
    assert 14 <= min(sizes) < max(sizes)
    broken = page.locator(".book-lines").count()
    assert broken > len(sizes) / 10
    wide = f"{FORMULAS}.filter((formula) => !{FITS})"  # a long reason cannot be broken
    assert page.evaluate(f"{wide}.length") < len(sizes) / 10
    assert set(page.evaluate(f"{wide}.map((formula) => getComputedStyle(formula).overflowX)")) <= {"auto", "scroll"}
    assert page.evaluate(STRAY_STOPS) == 0
    assert page.evaluate(SCROLLING_WITHOUT_NEED) == 0
    assert page.evaluate(UNTOUCHED), "a folded answer was opened, and all formulas of the page were measured again"
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_function("broken => document.querySelectorAll('.book-lines').length < broken / 4", arg=broken)


def test_formulas_are_measured_again_when_a_sidebar_has_opened_or_closed(long_chapter):
    long_chapter.set_viewport_size({"width": 1280, "height": 800})
    formula = long_chapter.locator(".bd-article div.math").first
    for _ in range(2):
        formula.evaluate("formula => { formula.style.fontSize = '1px'; }")
        long_chapter.locator(".primary-toggle").click()
        long_chapter.wait_for_function("formula => formula.style.fontSize !== '1px'", arg=formula.element_handle())


def test_each_chapter_has_an_interactive_figure():
    assert [name for name in CHAPTERS if not has_figure(name)] == []


def test_the_model_on_the_first_page_reads_the_readers_word_and_shows_the_numbers_of_a_matrix(open_page):
    page = open_page("index.html")
    figure = page.locator(".mathllm-names-model")
    bars = figure.locator(".mathllm-next li")
    before = bars.all_text_contents()
    box = figure.get_by_role("textbox", name="Your name")
    box.fill("")
    box.press_sequentially("Jo")
    assert figure.locator(".mathllm-tokens li").all_text_contents() == ["⏎0", "j10", "o15"]
    assert bars.all_text_contents() != before
    likeliest = bars.first.text_content()[0]
    figure.get_by_role("button", name="Add the likeliest letter").click()
    assert box.input_value() == f"jo{likeliest}"
    matrix = figure.get_by_role("button", name=re.compile(r"^Q\s*4 × 16"))
    matrix.focus()
    page.keyboard.press("Enter")
    assert matrix.get_attribute("aria-pressed") == "true"
    table = figure.get_by_role("region", name="The numbers of Q").locator("table")
    assert table.locator("tbody tr").count() == 4
    first = table.locator("tbody td").first
    shown = first.text_content()
    assert re.fullmatch(r"−?\d+\.\d\d", shown)
    figure.get_by_label("head").select_option("2")
    assert first.text_content() != shown


def test_a_reader_predicts_and_chooses_by_keyboard_and_only_then_sees_the_answer(softmax):
    page = softmax
    for question in page.locator("form.book-question").all():
        answer = question.locator("+ details.book-answer")
        assert answer.get_attribute("open") is None
        choice = answer.get_attribute("data-choice")
        if choice:
            options = page.locator(f"input[type=radio][form={question.get_attribute('id')}]")
            assert options.count() >= 2
            options.nth(int(choice) % options.count()).focus()
            page.keyboard.press("Space")
        else:
            question.get_by_role("textbox", name="Your prediction").focus()
            page.keyboard.type("12345.5")
        page.keyboard.press("Enter")
        assert question.locator("output").text_content() == "Not this one: see below."
        assert answer.get_attribute("open") is not None
        if choice:
            options.nth(int(choice) - 1).focus()
            page.keyboard.press("Space")
        else:
            question.get_by_role("textbox").fill(answer.get_attribute("data-answer"))
        page.keyboard.press("Enter")
        assert question.locator("output").text_content() == "Right."
        if not choice:  # as it is written where decimals follow a comma
            question.get_by_role("textbox").fill(answer.get_attribute("data-answer").replace(".", ","))
            page.keyboard.press("Enter")
            assert question.locator("output").text_content() == "Right."
    assert page.locator("form.book-question").count() == page.locator("details.book-answer").count() > 1


PAPER, INK = "e => getComputedStyle(e).backgroundColor", "e => getComputedStyle(e).color"


def brightness(element, which):
    """How bright an element's paper or ink is, from 0 to 255."""
    red, green, blue = map(float, re.findall(r"[\d.]+", element.evaluate(which))[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


CUT_LINES = "[...document.querySelectorAll('.bd-article pre')].filter((e) => e.scrollWidth > e.clientWidth + 1).length"


def test_a_dark_page_is_printed_light_with_its_number_whole_lines_and_no_bar_of_a_folded_cell(softmax):
    page = softmax
    page.set_viewport_size({"width": 720, "height": 1000})  # about a sheet of A4
    page.emulate_media(media="print", color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    assert brightness(page.locator("body"), PAPER) < 40  # for a reader whose system is dark
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert brightness(page.locator("body"), PAPER) > 230
    assert page.evaluate(CUT_LINES) == 0
    headings = [heading for heading in page.locator("h1").all() if heading.is_visible()]
    assert [heading.text_content().split()[0] for heading in headings] == ["6."]
    assert page.locator("div.cell details.hide").count() > 0
    assert page.locator("div.cell details.hide:visible:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert brightness(page.locator("body"), PAPER) < 40
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(media="screen", color_scheme="light")


def test_the_reader_can_turn_the_page_dark_and_it_stays_dark_on_the_next_page(softmax):
    page = softmax
    body = page.locator("body")
    assert brightness(body, PAPER) > 230
    assert brightness(body, INK) < 80
    page.get_by_role("button", name="Color mode").click()
    page.get_by_role("button", name="Dark").click()
    assert brightness(body, PAPER) < 40
    assert brightness(body, INK) > 180
    for figure in page.locator(".mathllm-widget").all():
        assert brightness(figure, PAPER) < 60
        assert brightness(figure, INK) > 180
    page.goto(urljoin(page.url, "../index.html"))
    assert brightness(page.locator("body"), PAPER) < 40
    page.evaluate("localStorage.clear()")  # other pages of this window are light again
