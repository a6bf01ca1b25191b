"""Cards that explain symbols, terms and equations, for the pointer and for the keyboard."""

import pytest

pytestmark = pytest.mark.slow

SYMBOL = "p span.math[data-symbols]:visible"
TERM = "a.book-term:visible"
EQUATION = 'a.reference[href*="#equation-"]:visible'


@pytest.fixture(scope="module")
def chapter(window):
    return window("notebooks/06_softmax.html")


@pytest.mark.parametrize(("thing", "inside"), [(SYMBOL, "dl dt"), (TERM, "strong"), (EQUATION, "mjx-container")])
def test_a_card_comes_with_the_focus_and_goes_with_escape(chapter, thing, inside):
    explained = chapter.locator(thing).first
    focused = explained.locator("mjx-container") if thing == SYMBOL else explained
    focused.focus()
    card = chapter.locator("#book-card[role=tooltip]")
    card.locator(inside).first.wait_for()
    assert focused.get_attribute("aria-describedby") == "book-card"
    assert card.locator("mjx-merror").count() == 0
    chapter.keyboard.press("Escape")
    assert card.count() == 0
    assert focused.get_attribute("aria-describedby") is None


def test_escape_also_stops_a_card_that_is_still_being_made(chapter):
    chapter.locator(TERM).first.evaluate("""term => {
      term.focus();
      document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
    }""")
    chapter.wait_for_timeout(300)
    assert chapter.locator("#book-card").count() == 0
    chapter.evaluate("document.activeElement.blur()")


def test_a_card_stays_while_the_pointer_is_on_it_and_goes_when_it_leaves(chapter):
    chapter.locator(TERM).first.hover()
    card = chapter.locator("#book-card")
    card.wait_for()
    card.hover()
    chapter.wait_for_timeout(800)  # longer than a card waits before it goes
    assert card.count() == 1
    chapter.mouse.move(2, 2)
    card.wait_for(state="detached")


def test_a_card_fits_a_telephone(chapter):
    chapter.set_viewport_size({"width": 360, "height": 740})
    for explained in chapter.locator(f"{TERM}, {EQUATION}").all()[:12]:
        explained.focus()
        card = chapter.locator("#book-card")
        card.wait_for()
        box = card.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
        chapter.keyboard.press("Escape")
