"""What check() promises the learner, on small exercises of its own."""

import json
import re
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from mathllm_exercises import Item, Mistake, check, item, items, kernel_side, learner, numbers, registry, report, values
from mathllm_exercises.item import keeps_dtype, leaves_inputs, refuses, shape
from mathllm_exercises.own_numbers import own_numbers

import mathllm
from mathllm import fast, gradients, training, vectors
from mathllm.errors import UnknownReferenceError
from mathllm.exhibits import backpropagation as exhibits


def make(id, kind="function", **fields):
    record = {
        "title": "A small exercise", "task": "", "difficulty": 1, "minutes": 1, "source": "ours", "answer": "double",
    }  # fmt: skip
    return Item(id, kind, **(record | fields))


def doubled(x):
    if x.size == 0:
        raise ValueError("nothing to double")
    return 2 * x


DOUBLE = make(
    "99.test.double",
    expected=doubled,
    checks=(
        values(3, lambda rng: [(rng.normal(size=4),)], public=[(np.array([1.0, 2.0]),)]),
        shape(1, lambda rng: [(rng.normal(size=(2, 3)),)]),
        keeps_dtype(1, public=[(np.ones(2, np.float32),)]),
        leaves_inputs(1, lambda rng: [(rng.normal(size=3),)]),
        refuses(1, public=[(np.array([]),)]),
    ),
    mistakes=(
        Mistake(lambda x: x * x, "You squared instead of doubling.", score=1),
        Mistake(lambda x: x + x if x.size else x, "Nothing to double is an error.", score=6),
    ),
)
BRANCH = make(
    "99.test.branch", expected=doubled, checks=(values(1, public=[(np.array([1.0, 2.0]),)]),),
    mistakes=(Mistake(lambda x: 2 * x if x > 0 else x + x, "`if` needs one truth value."),),
)  # fmt: skip
OWN = make(
    "99.test.own", "value", answer="total", numbers=lambda rng: {"a": int(rng.integers(1, 10**9)), "b": 0.123},
    expected=lambda a, b: a + b, checks=(values(2, decimals=2),), mistakes=(Mistake(lambda a, b: a - b, "Add."),),
)  # fmt: skip
COUNT = make(
    "99.test.count", "value", answer="count", expected=lambda: 2, checks=(values(1),),
    mistakes=(Mistake(lambda: 3, "You began with one."),),
)  # fmt: skip
SUMS = make(
    "99.test.sums", "value", answer="sums", expected=lambda: [0.25, 0.3333, 5.0], checks=(values(1, decimals=3),),
    mistakes=(Mistake(lambda: [0.33, 0.33, 5.0], "You took thirds twice."),),
)  # fmt: skip


def stopping(x):
    raise ValueError("not yet")


THIRD = make(
    "99.test.third", "value", answer="x", expected=lambda: 1 / 3, checks=(values(1, decimals=3),),
    mistakes=(Mistake(lambda: 2 / 3, "Two thirds."), Mistake(lambda: 0.3349, "A little more than a third."),
              Mistake(lambda: 7 / 9, "Ninths."), Mistake(lambda: 0.7791, "A little more than seven ninths.")),
)  # fmt: skip
EXACT = make("99.test.exact", "value", answer="x", expected=lambda: [1.05, True], checks=(values(1),))
QUICK = make("99.test.quick", "value", answer="two", expected=lambda: 2, checks=(values(1),), graded=False)
LARGE = make("99.test.large", expected=doubled, checks=(values(1, public=[(np.arange(400.0).reshape(20, 20),)]),))
TEXT = make("99.test.text", "text", answer="", rubric=((2, "says why"), (1, "says how")))


@pytest.fixture(autouse=True)
def small_exercises(monkeypatch):
    found = (DOUBLE, BRANCH, OWN, COUNT, TEXT, SUMS, THIRD, EXACT, QUICK, LARGE)
    monkeypatch.setattr(registry, "_all", lambda: {entry.id: entry for entry in found})
    monkeypatch.setenv("MATHLLM_LEARNER", "ada")


def said(id, answer):
    return str(check(id, answer))


def test_validate_is_told_in_words_what_is_missing_and_nothing_of_what_is_right(monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_VALIDATING", "1")
    assert check("99.test.double", lambda x: None).score() == 0.0
    assert "0 of 7 points\n  no answer yet" in capsys.readouterr().err
    assert check("99.test.double", doubled).score() == 7.0
    assert capsys.readouterr().err == ""


def test_a_passing_report_reads_the_same_every_time(monkeypatch):
    """nbval compares the text, so fresh random inputs must not show in it."""
    monkeypatch.setattr(report, "_generator", np.random.default_rng)
    assert said(DOUBLE.id, doubled) == said(DOUBLE.id, doubled)
    assert said(DOUBLE.id, doubled).splitlines()[0] == "A small exercise (99.test.double): 7 of 7 points"


def test_the_first_failing_case_is_shown_with_what_was_expected_and_what_came():
    text = str(check("99.test.double", lambda x: 3 * x))
    assert "double([1, 2])\n      expected [2, 4], got [3, 6]" in text
    assert text.count("expected") == 1


def test_a_known_mistake_is_named_also_next_to_another_one():
    squares = check("99.test.double", lambda x: x**2)
    assert squares.mistakes == ("You squared instead of doubling.",)
    assert "→ You squared" in str(squares)
    assert check("99.test.double", lambda x: x * 2.0).mistakes == ("Nothing to double is an error.",)
    assert check("99.test.double", lambda x: 5 * doubled(x)).mistakes == ()
    assert check("99.test.double", lambda x: (x * x).astype(float)).mistakes[0] == squares.mistakes[0]


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda x: x + x if x > 0 else 2 * x, True),  # NumPy says the same as of the mistake below
        (lambda x: x + np.ones(7), False),  # a ValueError of another kind
        (stopping, False),  # a ValueError of the answer itself
    ],
)
def test_an_error_is_named_by_the_mistake_that_raises_the_same_one(answer, named):
    assert check(BRANCH.id, answer).mistakes == ("`if` needs one truth value.",) * named


@pytest.mark.parametrize("kind", [int, np.int64, float, np.float64, np.float32, np.array, Fraction, Decimal])
def test_a_number_is_right_or_a_known_mistake_whatever_its_type(kind):
    assert check("99.test.count", kind(2)).passed
    assert check("99.test.count", kind(3)).mistakes == ("You began with one.",)


def test_an_exact_number_may_be_float32_but_not_a_neighbour_in_float64():
    assert check(EXACT.id, [np.float32(1.05), True]).passed
    assert not check(EXACT.id, [float(np.float32(1.05)), True]).passed
    assert "the 2nd entry is wrong, the other one is right" in said(EXACT.id, [np.float32(1.05), False])


def test_a_function_that_calls_mathllms_own_is_refused_wherever_it_is_defined(monkeypatch):
    homes = (mathllm, vectors, gradients, exhibits, training, fast)  # a name need not be at the top, or there once
    own = {home: (lambda x: x + x) if home is fast else doubled for home in homes}
    for home in homes:
        monkeypatch.setattr(home, "double", own[home], raising=False)
    for home in homes:
        shown = check(DOUBLE.id, lambda x, home=home: home.double(x))
        assert shown.score() == 0.0
        assert "mathllm's double may not be used in this exercise" in str(shown)
    assert {home: home.double for home in homes} == own


def raises(x):
    raise ValueError


def adds_five_ones(x):
    y = np.ones(5)
    return x + y


def prints_its_shape(x):
    print("the shape is", x.shape)
    return x.sum()


def helper(x):
    return x.sum()


def prints(x):
    print(2 * x)


def calls_itself(x):
    return calls_itself(x)


def test_a_function_that_prints_is_told_to_return_and_one_that_calls_itself_is_no_helper():
    assert "return the result, printing it is not enough" in said("99.test.double", prints)
    assert "calls your own" not in said("99.test.double", calls_itself)
    assert "in line" not in said("99.test.double", 3)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda x: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda: None, "raised TypeError"),
        (lambda x: sys.exit(), "raised SystemExit"),
        (lambda x: not_a_name, "raised NameError"),  # noqa: F821
        (lambda x: "two", "not a number"),
        (lambda x: object(), "returned an object of type object; a number, a string"),
        (lambda x: x.tolist()[0], r"expected shape \(2,\), got shape \(\)"),
        (lambda x: x * np.nan, "contains NaN"),
        (3, "the answer should be a function, but its type is int"),
        (raises, "raised ValueError"),  # which also is the answer to bad input
        (mathllm.norm, "mathllm's own double"),
        (lambda x: x * (1 + 0j), "returned complex numbers; if their imaginary parts are 0, take `.real`"),
        (lambda x: {1.0, 2.0}, "returned a set, which has no order; use a list"),
        (adds_five_ones, r"operands could not be broadcast together with shapes \(2,\) \(5,\)"),
        (adds_five_ones, r"in line \d+: `return x \+ y`"),
        (prints_its_shape, r"your function printed:\n      the shape is \(2,\)"),
        (lambda x: print("many " * 1000) or x.sum(), "many …\n"),
        (lambda x: helper(x), "It calls your own `helper`."),
    ],
)
def test_a_wrong_answer_is_explained_and_never_raised(answer, reason):
    shown = check("99.test.double", answer)
    assert shown.marks.points == 0
    assert re.search(reason, str(shown))
    assert "CodecError" not in str(shown)


@pytest.mark.parametrize("answer", [..., None, lambda x: None, lambda x: ...])
def test_no_answer_yet_is_told_apart_from_a_wrong_one(answer):
    shown = check("99.test.double", answer)
    assert shown.marks.points == 0
    assert "no answer yet" in str(shown).splitlines()[-1]
    assert "no answer yet" in shown._repr_html_()


def test_a_value_item_compares_at_the_printed_precision_and_does_not_give_the_value_away():
    mine = numbers("99.test.own")
    assert check("99.test.own", mine.a + 0.12).passed
    wrong = check("99.test.own", mine.a + 0.2)
    assert not wrong.passed
    assert f"{mine.a}.12" not in str(wrong)
    assert check("99.test.own", mine.a - 0.123).mistakes == ("Add.",)


def test_own_numbers_depend_on_the_learner_and_on_nothing_else(monkeypatch):
    mine = numbers("99.test.own")
    assert numbers("99.test.own") == mine
    assert vars(mine) == own_numbers(OWN, "ada")
    monkeypatch.setenv("MATHLLM_LEARNER", "grace")
    assert learner() == "grace"
    assert numbers("99.test.own") != mine
    with pytest.raises(ValueError, match="same numbers for everybody"):
        numbers("99.test.double")


def test_an_unknown_id_names_the_near_ones():
    with pytest.raises(UnknownReferenceError, match=r"did you mean 99\.test\.double"):
        check("99.test.dubble", doubled)
    with pytest.raises(ValueError, match="a person grades it"):
        check("99.test.text", "an essay")


def test_items_are_found_by_chapter_number_and_by_slug():
    assert items("99") == items("test") == items()
    assert items("98") == []
    assert item("99.test.text").points == 3.0


def test_the_html_report_escapes_what_an_answer_returns():
    assert "<script>" not in check("99.test.double", lambda x: "<script>alert()</script>")._repr_html_()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"id": "norm"}, "NN.slug.name"),
        ({"kind": "quiz"}, "is none of"),
        ({"difficulty": 4}, "difficulty"),
        ({"hints": ("a", "b", "c", "d")}, "three hints"),
        ({"checks": ()}, "expected and checks"),
        ({"checks": (values(1, public=[()]), values(1, public=[()]))}, "same name"),
        ({"checks": (values(1),)}, "needs cases"),
        ({"kind": "value", "checks": (values(1), shape(1))}, "exactly one check"),
        ({"kind": "text", "checks": ()}, "rubric"),
    ],
)
def test_a_malformed_item_is_refused(fields, problem):
    record = {"id": "99.test.bad", "kind": "function", "expected": doubled, "checks": DOUBLE.checks} | fields
    with pytest.raises(ValueError, match=problem):
        make(**record)


def test_a_quick_question_speaks_of_no_points():
    assert said(QUICK.id, 2) == "A small exercise (99.test.quick)\n  ✓ right values"
    assert "point" not in said(QUICK.id, 3) + check(QUICK.id, 3)._repr_html_()


@pytest.mark.parametrize(
    ("id", "answer", "sentence"),
    [
        (THIRD.id, 0.33, "agrees with the answer to 2 decimals"),
        (SUMS.id, [0.25, 0.3333, 7], "the 3rd entry is wrong, the other 2 are right"),
        (SUMS.id, [1, 0.3333, 7], "the 1st and 3rd entries are wrong, the other one is right"),
        (SUMS.id, [[0.25], [0.3333], [5]], "the numbers are right, but not the brackets: give one flat list"),
        (COUNT.id, [2], "the numbers are right, but not the brackets: give one number"),
        (COUNT.id, "2", "expected a number, got a string"),
        (SUMS.id, ["a", "b"], r"expected an array or list of shape (3,), got 2 strings in a list"),
        (COUNT.id, {2}, "the answer is a set, which has no order"),
    ],
)
def test_it_is_said_how_near_a_value_is(id, answer, sentence):
    assert sentence in said(id, answer)


def test_a_value_is_not_called_nearly_right_for_one_decimal_an_exact_number_or_a_named_mistake():
    assert said(THIRD.id, 0.3).splitlines()[2].strip() == "0.3 is not the answer"
    named = said(SUMS.id, [0.33, 0.33, 5.0])
    assert "You took thirds twice." in named
    assert "right" not in named.replace("right values", "")
    inexact = said(SUMS.id, [0.3, 0.3333, 5.0])  # 0.25 is exact: 0.3 is not 0.25 rounded
    assert "agrees" not in named + inexact + said(OWN.id, numbers(OWN.id).a + 0.1)


def test_a_rounded_wrong_value_is_named_unless_another_value_could_be_meant():
    found = {answer: check(THIRD.id, answer).mistakes for answer in (0.67, 0.667, 0.33, 0.78, 0.778, 0.7)}
    assert found == {0.67: ("Two thirds.",), 0.667: ("Two thirds.",), 0.33: (), 0.78: (), 0.778: ("Ninths.",), 0.7: ()}


def doubles_in_place(x):
    if x.size == 0:
        raise ValueError
    x *= 2
    return x


def spoils_and_forgets(x):
    x += 1
    return np.zeros(x.shape)


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (np.zeros_like, ["– leaves its inputs alone (0 of 1): not judged yet, the values come first"]),
        (lambda x: doubled(x) if x.shape != (3,) else x, ["✓ leaves its inputs alone"]),  # the values there are wrong
        (spoils_and_forgets, ["✗ leaves its inputs alone", "✗ keeps the dtype"]),  # wrong by themselves
        (doubles_in_place, ["✓ right values", "✗ leaves its inputs alone", "✓ keeps the dtype"]),
        (lambda x: doubled(x) if x.size else {1, 2}, ["✗ refuses bad input"]),
        (lambda x: doubled(x).tolist(), ["expected an array of dtype float32, got a list"]),
        (lambda x: doubled(x) + 1e-8, ["first difference at [0]: expected 2.0, got 2.00000001 (off by 1e-08)"]),
    ],
)
def test_each_check_has_a_verdict_of_its_own_once_values_are_right(answer, lines):
    assert [line for line in lines if line not in said(DOUBLE.id, answer)] == []


@pytest.mark.parametrize("watched", [False, True], ids=["by an alarm", "by watching lines"])
def test_an_endless_loop_ends_with_a_message_of_its_own(watched, monkeypatch):
    def endless(x):
        while True:
            x = x + 0

    monkeypatch.setattr(kernel_side, "SECONDS", 0.3)
    if watched:
        monkeypatch.setattr(kernel_side, "_alarm", kernel_side._watch)
    text = said("99.test.double", endless)
    assert "was stopped after 0.3 seconds (does a loop never end?), in line" in text


def test_long_inputs_are_named_by_their_shape_and_can_be_had():
    assert "double(<shape (20, 20)>); try it: double(*check.case)" in said(LARGE.id, lambda x: x)
    np.testing.assert_array_equal(check.case[0], np.arange(400.0).reshape(20, 20))


def test_numbers_for_which_a_mistake_would_be_right_are_drawn_again():
    drawn = iter([0, 0, 2, 3])
    squared = make(
        "99.test.squared", "value", answer="x", numbers=lambda rng: {"n": next(drawn)}, expected=lambda n: n * n,
        checks=(values(1),), mistakes=(Mistake(lambda n: 2 * n, "Squared, not doubled."),),
    )  # fmt: skip
    assert own_numbers(squared, "ada") == {"n": 3}


def test_a_mistake_that_is_always_right_ends_the_drawing_of_numbers():
    same = make(
        "99.test.same", "value", answer="x", numbers=lambda rng: {"n": int(rng.integers(9))}, expected=lambda n: n + n,
        checks=(values(1),), mistakes=(Mistake(lambda n: 2 * n, "Never wrong."),),
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"'99\.test\.same' .* 1,000 times, and each time a known mistake gave"):
        own_numbers(same, "ada")


def test_unknown_wrong_answers_are_noted_only_where_the_learner_wants_it(tmp_path, monkeypatch):
    check("99.test.count", 7)
    monkeypatch.setenv("MATHLLM_FEEDBACK", str(tmp_path / "notes.jsonl"))
    check("99.test.count", 2)
    check("99.test.count", 3)
    check("99.test.count", 7)
    notes = [json.loads(line) for line in (tmp_path / "notes.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [note["sentences"] for note in notes] == [["You began with one."], []]
    assert notes[1] == {
        "item": "99.test.count", "check": "right values", "sentences": [], "unknown": "7 is not the answer",
    }  # fmt: skip
