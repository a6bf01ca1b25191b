"""The hours of the three paths on the start page are the sums of what the chapters and the exercises state."""

import json
import re

import pytest
from package import ROOT

TIME = re.compile(r"\bTime:\s+([^.;]+)[.;]")
WORDS = {"one": 1, "two": 2, "three": 3, "half": 0.5}
PATHS = {
    "Everything": [*range(1, 18)],
    "To the paper": [*range(1, 9), 10, 12],
    "From the model on": [10, *range(12, 18)],
}


def hours(words):
    """75 minutes -> 1.25; two and a half hours -> 2.5."""
    number = re.match(r"(\d+) minutes", words)
    return int(number[1]) / 60 if number else sum(WORDS.get(word, 0) for word in words.split())


CHAPTERS = {int(path.stem[:2]): path.read_text("utf-8") for path in (ROOT / "book").glob("[01][0-9]_*.md")}
READING = {number: hours(TIME.search(text)[1]) for number, text in CHAPTERS.items() if number}
ITEMS = json.loads((ROOT / "exercises/mathllm_exercises/bank.json").read_text("utf-8"))


@pytest.mark.parametrize("path", PATHS)
def test_the_hours_of_a_path_are_those_of_its_chapters_and_exercises(path):
    chapters = PATHS[path]
    text = sum(READING[number] for number in chapters)
    work = sum(item["minutes"] for item in ITEMS if int(item["id"][:2]) in chapters and item["graded"]) / 60
    row = next(line for line in CHAPTERS[0].splitlines() if line.startswith(f"| **{path}**"))
    assert re.findall(r"(\d+) hours", row) == [f"{text:.0f}", f"{text + work:.0f}"]
