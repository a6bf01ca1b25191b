"""What check() promises the learner, on small exercises of its own."""

import re
import subprocess
import sys

import numpy as np
import pytest
from mathllm_exercises import Item, Mistake, check, item, items, learner, numbers, registry, values
from mathllm_exercises.item import gradient, keeps_dtype, leaves_inputs, refuses, shape
from mathllm_exercises.own_numbers import own_numbers

from mathllm.errors import UnknownReferenceError


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
OWN = make(
    "99.test.own", "value", answer="total", numbers=lambda rng: {"a": int(rng.integers(1, 10**9)), "b": 0.123},
    expected=lambda a, b: a + b, checks=(values(2, decimals=2),), mistakes=(Mistake(lambda a, b: a - b, "Add."),),
)  # fmt: skip
SLOPE = make(
    "99.test.slope", "gradient", answer="pullback", expected=lambda x, dy: 2 * x * dy,
    checks=(gradient(2, lambda x: x * x, lambda rng: [(rng.normal(size=3), rng.normal(size=3))]),),
)  # fmt: skip
COUNT = make(
    "99.test.count", "value", answer="count", expected=lambda: 2, checks=(values(1),),
    mistakes=(Mistake(lambda: 3, "You began with one."),),
)  # fmt: skip
TEXT = make("99.test.text", "text", answer="", rubric=((2, "says why"), (1, "says how")))


@pytest.fixture(autouse=True)
def small_exercises(monkeypatch):
    found = {entry.id: entry for entry in (DOUBLE, OWN, COUNT, SLOPE, TEXT)}
    monkeypatch.setattr(registry, "_all", lambda: found)
    monkeypatch.setenv("MATHLLM_LEARNER", "ada")


def test_a_right_answer_passes_every_check_and_scores_all_points(capsys):
    report = check("99.test.double", doubled)
    assert report.passed
    assert report.mistakes == ()
    assert report.score() == 7.0
    assert type(report.score()) is float


def test_validate_is_told_in_words_what_is_missing_and_nothing_of_what_is_right(monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_VALIDATING", "1")
    assert check("99.test.double", lambda x: None).score() == 0.0
    assert "0 of 7 points\n  no answer yet" in capsys.readouterr().err
    assert check("99.test.double", doubled).score() == 7.0
    assert capsys.readouterr().err == ""


def test_a_passing_report_reads_the_same_every_time():
    """nbval compares the text, so fresh random inputs must not show in it."""
    assert str(check("99.test.double", doubled)) == str(check("99.test.double", doubled))
    assert str(check("99.test.double", doubled)).splitlines()[0] == "A small exercise (99.test.double): 7 of 7 points"


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


def test_a_known_mistake_is_named_whatever_type_its_number_has():
    for kind in (int, np.int64, float, np.float64):
        assert check("99.test.count", kind(3)).mistakes == ("You began with one.",)


def test_a_function_that_calls_mathllms_own_is_refused_as_it_is_when_graded(monkeypatch):
    import mathllm
    from mathllm import fast, gradients, vectors
    from mathllm.exhibits import backpropagation as exhibits

    for home in (mathllm, vectors, gradients, fast, exhibits):  # a name need not be at the top
        with monkeypatch.context() as patch:
            patch.setattr(home, "double", doubled, raising=False)
            report = check("99.test.double", lambda x, home=home: home.double(x))
            assert report.score() == 0.0
            assert "mathllm's double may not be used in this exercise" in str(report)
            assert home.double is doubled


def test_each_function_of_the_name_is_refused_where_mathllm_has_several(monkeypatch):
    from mathllm import fast, training

    def doubled_sooner(x):
        return x + x

    monkeypatch.setattr(training, "double", doubled, raising=False)
    monkeypatch.setattr(fast, "double", doubled_sooner, raising=False)
    for home in (training, fast):
        assert check("99.test.double", lambda x, home=home: home.double(x)).score() == 0.0
    assert (training.double, fast.double) == (doubled, doubled_sooner)


def test_a_right_number_with_too_few_decimals_is_told_apart_from_a_wrong_one():
    own = numbers("99.test.own")
    for answer, reason in [(own.a + 0.1, "is right, but has too few decimals"), (own.a + 0.2, "is not the answer")]:
        report = check("99.test.own", answer)
        assert report.marks.points == 0
        assert reason in str(report)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda x: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda: None, "raised TypeError"),
        (lambda x: sys.exit(), "raised SystemExit"),
        (lambda x: not_a_name, "raised NameError"),  # noqa: F821
        (lambda x: "two", "not a number"),
        (lambda x: object(), "returned a object; a number, a string"),
        (lambda x: x.tolist()[0], r"expected shape \(2,\), got shape \(\)"),
        (lambda x: x * np.nan, "contains NaN"),
        (3, "the answer should be a function, and is a int"),
    ],
)
def test_a_wrong_answer_is_explained_and_never_raised(answer, reason):
    report = check("99.test.double", answer)
    assert report.marks.points == 0
    assert re.search(reason, str(report))


@pytest.mark.parametrize("answer", [..., None, lambda x: None, lambda x: ...])
def test_no_answer_yet_is_told_apart_from_a_wrong_one(answer):
    report = check("99.test.double", answer)
    assert report.marks.points == 0
    assert "no answer yet" in str(report).splitlines()[-1]
    assert "no answer yet" in report._repr_html_()


def test_an_answer_that_only_raises_earns_nothing_for_refusing_bad_input():
    def refuse(x):
        raise ValueError

    assert check("99.test.double", refuse).marks.points == 0


def test_zeros_of_the_right_shape_earn_nothing():
    assert check("99.test.double", np.zeros_like).marks.points == 0


def test_an_answer_that_spoils_its_input_loses_that_check():
    def spoil(x):
        if x.size == 0:
            raise ValueError
        x *= 2
        return x

    report = check("99.test.double", spoil)
    assert [o.check.name for o in report.marks.outcomes if o.failure] == ["leaves its inputs alone"]


def test_the_packages_own_function_is_not_an_answer():
    import mathllm

    report = check("99.test.double", mathllm.norm)
    assert report.marks.points == 0
    assert "mathllm's own double" in str(report)


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


def test_a_gradient_is_checked_against_finite_differences():
    assert check("99.test.slope", lambda x, dy: 2 * x * dy).passed
    assert check("99.test.slope", lambda x, dy: x * dy).marks.points == 0


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


def test_the_learners_side_needs_numpy_alone():
    """In the browser there is no nbgrader, and no IPython is needed to look at a report."""
    code = (
        "import sys\n"
        "for name in ('IPython', 'nbgrader', 'nbformat', 'matplotlib', 'jupytext'): sys.modules[name] = None\n"
        "from mathllm_exercises import check, items\n"
        "print(check('01.vectors.quick_components', 4).score())"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "1.0"


def test_a_quick_question_speaks_of_no_points(monkeypatch):
    quick = make("99.test.quick", "value", answer="two", expected=lambda: 2, checks=(values(1),), graded=False)
    monkeypatch.setattr(registry, "_all", lambda: {quick.id: quick})
    assert str(check(quick.id, 2)) == "A small exercise (99.test.quick)\n  ✓ right values"
    assert "point" not in str(check(quick.id, 3)) + check(quick.id, 3)._repr_html_()
