"""The lines of an order on a page, at the keyboard alone: what a reader sees, hears, and copies."""

import json
from importlib import resources

import pages
import pytest
from mathllm_exercises import arranging, items

from mathllm.figures import widgets

pytestmark = pytest.mark.slow

ORDER = next(entry for entry in items() if entry.kind == "order")
# What anywidget gives to a module, without a kernel behind it.
PAGE = """<!doctype html><html lang="en"><title>An order</title><style>%s</style><main id="here"></main>
<script type="module">
%s
const state = %s, heard = {};
window.model = {
  get: (name) => state[name],
  set: (name, value) => { state[name] = value; (heard[`change:${name}`] ?? []).forEach((each) => each()); },
  save_changes: () => (window.saved = (window.saved ?? 0) + 1),
  on: (name, each) => (heard[name] ??= []).push(each),
  off: (name, each) => (heard[name] = heard[name].filter((other) => other !== each)),
};
window.end = shown.render({ model, el: document.querySelector("#here") });
</script></html>"""


@pytest.fixture
def page(browser, tmp_path):
    """A page with the first order of the book."""
    lines = ORDER.checks[0].assess.args[0]
    state = {"title": ORDER.title, "name": ORDER.answer, "order": [],
             "lines": [{key: line[key] for key in ("label", "shown")} for line in lines]}  # fmt: skip
    own = resources.files(arranging.__package__)
    module = widgets.read("elements.js") + (own / "arranging.js").read_text(encoding="utf-8")
    style = widgets.read("widgets.css") + (own / "arranging.css").read_text(encoding="utf-8")
    module = module.replace("export default", "const shown =").replace("export ", "")
    (tmp_path / "order.html").write_text(PAGE % (style, module, json.dumps(state)), encoding="utf-8")
    address = (tmp_path / "order.html").as_uri()
    with pages.window(browser, address) as (context, _):
        page = context.new_page()
        page.goto(address)
        page.get_by_role("group", name=ORDER.title).wait_for()
        yield page


def focused(page):
    return page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent")


def result(page):
    return page.get_by_role("textbox", name="Write this into the answer cell").input_value()


def tab_to(page, name):
    """Press Tab until the control with this name has the focus."""
    for _ in range(60):
        if focused(page) == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never reaches {name!r}")


def test_lines_are_taken_moved_and_put_back_at_the_keyboard_and_the_focus_stays(page):
    assert result(page) == f'{ORDER.answer} = ""'
    for label in "ABC":
        tab_to(page, f"Take line {label}")
        page.keyboard.press("Enter")
        assert focused(page).endswith(f"line {label} up") or focused(page).endswith(f"line {label} back")
    assert result(page).endswith('= "A B C"')
    tab_to(page, "Move line C up")
    page.keyboard.press("Enter")
    assert focused(page) == "Move line C up"
    assert page.get_by_role("status").inner_text() == "Line C is now 2 of 3."
    page.keyboard.press("Space")
    assert result(page).endswith('= "C A B"')
    assert focused(page) == "Move line C down"  # it cannot go up any more
    page.keyboard.press("Alt+ArrowDown")
    assert result(page).endswith('= "A C B"')
    page.keyboard.press("Delete")
    assert result(page).endswith('= "A B"')
    assert focused(page) == "Take line C"
    assert page.get_by_role("status").inner_text() == "Line C is put back."


def test_every_control_has_a_role_and_a_name_and_every_formula_is_read(page):
    lines = ORDER.checks[0].assess.args[0]
    for line in lines:
        page.get_by_role("button", name=f"Take line {line['label']}", exact=True).click()
    names = [button.get_attribute("aria-label") or button.inner_text() for button in page.get_by_role("button").all()]
    assert len(names) == len(set(names)) == 3 * len(lines) + 1
    assert page.locator("math").count() == sum(line["text"].count("$") // 2 for line in lines) > 0
    assert page.get_by_role("list", name="Your derivation").get_by_role("listitem").count() == len(lines)
    assert page.get_by_role("status").get_attribute("aria-live") == "polite"


def test_the_kernel_hears_of_each_change_and_the_page_of_the_kernels(page):
    page.get_by_role("button", name="Take line B", exact=True).click()
    assert page.evaluate("[window.saved, model.get('order')]") == [1, ["B"]]
    page.evaluate("model.set('order', ['C', 'A'])")
    assert result(page).endswith('= "C A"')
    page.evaluate("end(); model.set('order', [])")
    assert result(page).endswith('= "C A"')


def test_outside_a_notebook_nothing_is_shown_and_only_an_order_has_lines(capsys):
    assert arranging.arrange(ORDER.id) is None
    assert capsys.readouterr().out == ""
    with pytest.raises(ValueError, match="no lines to put in order"):
        arranging.arrange("01.vectors.norm")


def test_where_no_page_shows_it_the_figure_says_what_it_is():
    figure = arranging._figure()(title=ORDER.title, name=ORDER.answer, lines=[])
    assert repr(figure) == f"Lines to put in order: {ORDER.title}"
