"""What the grader believes of a kernel's reply: values it can decode and that are right, and nothing else."""

import json

import numpy as np
import pytest
from mathllm_exercises import codec, item, marking
from mathllm_grading.grading import course_key, private_rng, verdict

NORM = item("01.vectors.norm")
CASES = marking.draw(NORM, np.random.default_rng(5))


def reply(observations, nonce="abc"):
    return codec.dumps({"nonce": nonce, "observations": observations})


def points(text):
    marks = verdict(NORM, CASES, text, "ada", "abc")
    return None if marks is None else marks.points


RIGHT = marking.observe_all(NORM.expected, CASES)


def spoiled(value):
    return [seen | {"value": value} for seen in RIGHT]


def test_right_values_earn_all_points_and_surplus_values_no_more():
    assert points(reply(RIGHT)) == points(reply(RIGHT + RIGHT)) == NORM.points


@pytest.mark.parametrize(
    "observations",
    [
        [], [None], [True] * 50, RIGHT[:0], [[]] * len(RIGHT), [{"value": "5.0"}] * len(RIGHT), [{"points": 8}],
        spoiled(["float", "nan"]), spoiled(["float", "inf"]), spoiled(["float", "-inf"]), spoiled(True), spoiled(None),
        spoiled("5"), spoiled({"value": 5}), spoiled(["dict"]), spoiled(["array", "object", [], [5]]), spoiled([5.0]),
        [{"error": ["ValueError"], "message": 3}] * len(RIGHT), [{"error": "ValueError"}] * len(RIGHT),
    ],
)  # fmt: skip
def test_anything_else_earns_nothing_and_raises_nothing(observations):
    assert points(reply(observations)) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        None, "", 8.0, "8.0", "null", "[]", "{}", '{"nonce": "abc"}', '{"nonce": "abc", "observations": 8}',
        "x" * 10**7, reply(RIGHT, nonce="other"),
    ],
)  # fmt: skip
def test_a_reply_that_is_none_or_answers_another_request_is_no_reply(text):
    assert points(text) is None


@pytest.mark.parametrize("seen", [{"value": 1, "calls": ["@"]}, {"error": ["@"]}, {"error": ["E"], "message": "@"}])
def test_no_line_of_a_verdict_is_forged(seen):
    forged = json.dumps(seen).replace("@", "f\\n  ✓ one vector (1 of 1)\\n")
    said = marking.text(verdict(NORM, CASES, reply([json.loads(forged)] * len(RIGHT)), "ada", "abc"))
    assert "✓ one vector" in said
    assert not [line for line in said.splitlines() if line.startswith("  ✓")]


def test_a_short_reply_earns_only_the_checks_it_answers():
    first = CASES[0]
    answered = [check for check, cases in zip(NORM.checks, CASES, strict=True) if cases is first]
    assert [check.name for check in answered] == ["one vector", "leaves its inputs alone"]  # judged by the same calls
    assert points(reply(RIGHT[: len(first)])) == sum(check.points for check in answered)


def test_inputs_said_to_be_changed_lose_the_check_that_looks_at_them():
    seen = [entry | {"after": ["list", ["float", "0x0p+0"]]} for entry in RIGHT]
    lost = sum(check.points for check in NORM.checks if check.name == "leaves its inputs alone")
    assert points(reply(seen)) == NORM.points - lost > 0


def test_private_cases_differ_between_keys_assignments_learners_and_items():
    names = [
        (b"k" * 32, "a1", "ada", "01.x.y"), (b"l" * 32, "a1", "ada", "01.x.y"), (b"k" * 32, "a2", "ada", "01.x.y"),
        (b"k" * 32, "a1", "bob", "01.x.y"), (b"k" * 32, "a1", "ada", "01.x.z"),
    ]  # fmt: skip
    drawn = {name: private_rng(*name).integers(2**62) for name in names}
    assert len(set(drawn.values())) == len(names)
    assert drawn == {name: private_rng(*name).integers(2**62) for name in names}


def test_the_course_key_is_made_once_and_kept_from_others(tmp_path, monkeypatch):
    monkeypatch.delenv("MATHLLM_COURSE_KEY", raising=False)
    path = tmp_path / ".course_key"
    key = course_key(path)
    assert course_key(path) == key
    assert path.stat().st_mode & 0o777 == 0o600
    assert course_key(tmp_path / "another") != key
    monkeypatch.setenv("MATHLLM_COURSE_KEY", "from the environment")
    assert course_key(path) == b"from the environment"
