"""What the browser remembers: the way back into the book, and cards that come again when they are due."""

import json
import re

import pytest
import review
from package import ROOT

pytestmark = pytest.mark.slow

CARDS = review.cards(ROOT / "book")


def test_every_chapter_has_cards_and_the_deck_for_anki_has_the_same(site):
    ids = [card["id"] for card in CARDS]
    assert len({*ids}) == len(ids) > 200
    chapters = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb") if not path.stem.startswith("00_")}
    for kind in ("Write the formula: ", ""):
        assert {card["chapter"]["name"] for card in CARDS if card["front"].startswith(kind)} == chapters
    text = (site / "review.html").read_text(encoding="utf-8")
    assert re.findall(r'id="card-(\d\d-\w{8})"', text) == ids
    lines = (site / "cards.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    assert [len(row) for row in rows] == [3] * len(CARDS)
    assert rows[0][2] == "01_vectors"
    assert any(r"\(" in row[1] for row in rows)
    assert not any("$" in row[0] + row[1] for row in rows)


@pytest.fixture
def reader(open_page, address):
    """A page with a clock that the test moves."""
    page = open_page("404.html")
    page.clock.install(time="2030-01-01T09:00:00")

    def visit(name):
        page.goto(f"{address}/{name}")
        page.evaluate("window.MathJax?.startup?.promise")
        page.clock.run_for(1000)
        return page

    page.visit = visit
    return page


LEFT = """count => count
  ? document.querySelector(".book-left")?.textContent.startsWith(`${count} card`)
  : !document.querySelector(".book-left")"""


def left(page):
    return page.locator("#book-review").inner_text()


def test_the_first_page_leads_back_to_where_the_reader_was_and_shows_what_each_chapter_has_come_to(reader):
    page = reader.visit("index.html")
    assert page.locator(".book-go-on").count() == 0
    page = reader.visit("notebooks/06_softmax.html")
    heading = page.locator("h2", has_text="Temperature").first
    heading.scroll_into_view_if_needed()
    place = heading.evaluate("heading => heading.parentElement.id")
    page.wait_for_function("place => bookMemory.load().pages['06_softmax']?.section === place", arg=place)
    prediction = page.locator("form.book-question:has(input[type=text])").first
    prediction.get_by_role("textbox").fill(prediction.locator("+ details").get_attribute("data-answer"))
    prediction.get_by_role("button", name="Check").click()
    page = reader.visit("index.html")
    link = page.locator(".book-go-on a").first
    assert link.text_content().startswith("6. ")
    assert link.get_attribute("href") == f"notebooks/06_softmax.html#{place}"
    chapter = page.locator(".book-chapters li", has=page.locator("a[href*='06_softmax']"))
    assert "begun, 1 question right" in chapter.inner_text()


def test_the_next_exercise_is_one_that_was_wrong_or_the_first_that_was_not_tried_and_every_place_exists(site, reader):
    page = reader.visit("index.html")
    chapters = json.loads(page.locator("#book-exercises").text_content())
    for chapter in chapters:
        text = (site / "notebooks" / f"{chapter['name']}.html").read_text(encoding="utf-8")
        assert len(chapter["cards"]) >= 8
        assert [card for card in chapter["cards"] if f'id="{card["place"]}"' not in text] == []
    cards = next(chapter["cards"] for chapter in chapters if chapter["name"] == "06_softmax")
    for answers, expected in [({}, 0), ({0: True}, 1), ({0: True, 5: False}, 5), ({0: True, 5: True}, 1)]:
        exercises = {cards[place]["id"]: right for place, right in answers.items()}
        read = {"06_softmax": {"title": "6. Softmax", "section": "logits", "heading": "Logits", "at": 1}}
        page.evaluate(
            "([pages, exercises]) => bookMemory.change((all) => Object.assign(all, { pages, exercises }))",
            [read, exercises],
        )
        page = reader.visit("index.html")
        link = page.locator(".book-go-on a").last
        assert link.text_content() == cards[expected]["title"]
        assert link.get_attribute("href") == f"notebooks/06_softmax.html#{cards[expected]['place']}"
    assert f"2 of {len(cards)} exercises solved" in page.locator(".book-chapters li").nth(5).inner_text()


def test_a_card_comes_again_when_it_is_due_and_what_is_remembered_travels_in_a_file(reader, tmp_path):
    reader.evaluate("bookMemory.change(({ pages }) => { pages['06_softmax'] = {}; })")  # the chapter has been opened
    page = reader.visit("review.html")
    assert "10 cards are waiting. This one is from chapter 6" in left(page)
    front = page.locator("#book-review .book-front").inner_text()
    for count in range(9, -1, -1):
        page.get_by_role("button", name="Show the answer").click()
        assert page.locator("#book-review .book-back").is_visible()
        page.get_by_role("button", name="Easy").click()
        page.wait_for_function(LEFT, arg=count)
    assert "No card is waiting. The next one comes in" in left(page)

    before = page.evaluate("JSON.stringify(bookMemory.load())")
    with page.expect_download() as file:
        page.get_by_role("button", name="Write it into a file").click()
    saved = tmp_path / file.value.suggested_filename
    file.value.save_as(saved)
    assert json.loads(saved.read_text()) == json.loads(before)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget everything").click()
    page.locator("#book-memory output", has_text="remembers nothing").wait_for()
    assert "no chapter has been opened" in left(page)
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"version": 1}')
    choose = page.get_by_label("Read it from a file")
    choose.set_input_files(wrong)
    page.locator("#book-memory output", has_text="Nothing has changed").wait_for()
    page.clock.fast_forward(400 * 3_600_000)  # milliseconds
    choose.set_input_files(saved)
    page.locator("#book-memory output", has_text="has taken the place").wait_for()
    assert page.evaluate("JSON.stringify(bookMemory.load())") == before
    assert page.locator("#book-review .book-front").inner_text() == front
