"""What a person does in JupyterLab, at the screen and at the keyboard; tests with a browser share it."""

import contextlib
import urllib.request

import nbformat
import pages

CHANGED = ".lm-TabBar-tab.jp-mod-dirty"


def is_up(url):
    """Whether a server of this machine answers there."""
    with contextlib.suppress(OSError), urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url):
        return True
    return False


@contextlib.contextmanager
def window(browser, address):
    """A page in a window of its own; at its end, no other server was asked and no script has failed."""
    with pages.window(browser, address, width=1400, height=1000) as (context, _):
        yield context.new_page()


def open_notebook(page, address, path):
    """Open a notebook alone, and wait until its kernel is ready."""
    page.goto(f"{address}/lab/tree/{path}?reset")
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()


def cell(page, number):
    found = page.locator(f".jp-Notebook-cell[data-windowed-list-index='{number}']")
    found.scroll_into_view_if_needed()
    return found


def run(page, number, source=None):
    """Write into a cell, if something is to be written, and run it as one does at the keyboard."""
    found = cell(page, number)
    found.locator(".cm-content").click()
    if source:
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.insert_text(source)
    page.keyboard.press("Control+Enter")
    return found


def numbers(path):
    """{cell id: position} of a notebook, and its answers {grade id: source}."""
    cells = nbformat.read(path, 4).cells
    answers = {c.metadata.nbgrader.grade_id: c.source for c in cells if c.metadata.get("nbgrader", {}).get("solution")}
    return {c.id: n for n, c in enumerate(cells)}, answers


def click_and_read(page, button):
    """Click on what opens one of formgrader's messages, read it and close it."""
    button.click()
    message = page.locator(".modal.in .modal-body")
    message.get_by_text("Log Output").wait_for()
    text = message.inner_text()
    page.locator(".modal.in .modal-footer .close").click()
    page.locator(".modal.in").wait_for(state="detached")
    return text


def assignments(page, address):
    """The list of assignments that the menu opens."""
    page.goto(f"{address}/lab?reset")
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_role("menuitem", name="Assignment List").click()
    return page.locator("#assignments")
