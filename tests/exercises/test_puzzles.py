"""The kinds `order`, `lines` and `choice`: what earns how much, and what is never accepted."""

import itertools
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mathllm_exercises import check, choosing, derivation, item, items, ordering
from mathllm_exercises.expressions import ExpressionError, compute, parse

ORDERS = [entry.id for entry in items() if entry.kind == "order"]
LINES = [entry.id for entry in items() if entry.kind == "lines"]
CHOICES = [entry.id for entry in items() if entry.kind == "choice"]


def record_of(id):
    """Lines of an order, options of a choice, or a derivation: what the check was made with."""
    return item(id).checks[0].assess.args[0]


# order


@pytest.mark.parametrize("third", ["", "A", "B", "AB"])
@pytest.mark.parametrize("second", ["", "A"])
def test_the_moves_are_the_fewest(second, third):
    """None are left for a right order alone; one move saves one at most, and some move does save one."""
    needs = {"A": "", "B": second, "C": third}
    needed = ordering.above([{"label": label, "place": n, "needs": needs[label]} for n, label in enumerate(needs, 1)])
    words = [list(word) for length in range(5) for word in itertools.product("ABCX", repeat=length)]
    for word in words:
        shorter = [word[:i] + word[i + 1 :] for i in range(len(word))]
        put = [(word, label) for label in needs] + list(zip(shorter, word, strict=True))
        nearer = shorter + [[*rest[:j], label, *rest[j:]] for rest, label in put for j in range(len(rest) + 1)]
        after = {ordering.fewest_moves(other, needed) for other in nearer}
        now = ordering.fewest_moves(word, needed)
        right = sorted(word) == ["A", "B", "C"] and all({*needs[label]} <= {*word[:n]} for n, label in enumerate(word))
        assert (now == 0) == right
        assert now - 1 <= min(after) <= max(after) <= now + 1
        assert right or min(after) == now - 1


@pytest.mark.parametrize("answer", [3, ["A", 5], "1 2 3", "", [], {"A": 1}, "A" * 100_000, None, "α"])
def test_an_answer_that_is_no_list_of_letters_earns_nothing_and_says_so(answer):
    for id in (ORDERS[0], CHOICES[0]):
        verdict = item(id).checks[0].assess(answer)
        assert verdict.share == 0.0
        assert verdict.reason


@pytest.mark.parametrize("id", ORDERS)
def test_the_letters_as_they_stand_on_the_card_are_no_answer(id):
    lines = record_of(id)
    assert len(lines) <= 12
    needed = ordering.above(lines)
    assert ordering.fewest_moves([line["label"] for line in lines if line["place"]], needed) > 0
    for text in (line["text"] for line in lines):
        assert text.count("$") % 2 == 0


@pytest.mark.parametrize("id", ORDERS)
def test_the_sentence_of_a_line_that_does_not_belong_is_said_wherever_the_line_stands(id):
    lines = record_of(id)
    right = ordering.right_order(lines)
    for line in lines:
        if not line["place"]:
            for n in range(len(right) + 1):
                report = check(id, " ".join([*right[:n], line["label"], *right[n:]]))
                assert line["sentence"] in report.mistakes
                assert report.marks.points == round(item(id).points * (1 - 1 / len(right)), 2)


# lines


def right_lines(id):
    return derivation.steps(item(id).expected())


@pytest.mark.parametrize("id", LINES)
def test_a_derivation_is_a_path_of_true_lines_from_the_first_to_the_last(id):
    lines = right_lines(id)
    first, last, with_a_constant = lines[0], lines[-1], [lines[0], "1.0", *lines[1:]]
    for wrong in ([first, last], [first], [first, *lines], lines[1:], lines[:-1], with_a_constant):
        assert check(id, wrong).marks.points == 0, wrong
    assert "line 2 is not equal to line 1" in str(check(id, with_a_constant))
    assert check(id, "\n\n# so:\n= " + "\n= ".join(lines)).marks.points == item(id).points


@pytest.mark.parametrize("id", LINES)
def test_a_quantity_that_a_derivation_must_pass_through_is_asked_for(id):
    lines, record = right_lines(id), record_of(id)
    for expression in record["through"]:
        inputs = derivation.draw(record["arrays"], np.random.default_rng(0))
        assert compute(parse(expression), inputs).parts
    if record["through"]:
        around = [lines[0], *(f"{'+' * n}({lines[-1]})" for n in range(record["between"], 0, -1)), lines[-1]]
        assert "only repeats line" in str(check(id, around))
        around = [lines[0], *(f"{lines[0]} + {n} - {n}" for n in range(1, 4)), lines[-1]]
        assert "contains" in str(check(id, around))


@given(st.integers(0, 2**32))
def test_different_letters_are_different_sizes_and_none_is_one(seed):
    arrays = {"X": [["m", "n"], "real"], "p": [["n"], "distribution"], "Q": [["n", "n"], "orthogonal"],
              "i": [[], "index"], "y": [["n"], "one-hot"], "h": [[], "X @ p"]}  # fmt: skip
    drawn = derivation.draw(arrays, np.random.default_rng(seed))
    assert 1 not in drawn["X"].shape
    assert drawn["m"] != drawn["n"]
    np.testing.assert_allclose(drawn["p"].sum(), 1)
    np.testing.assert_allclose(drawn["Q"] @ drawn["Q"].T, np.eye(drawn["n"]), atol=1e-12)
    np.testing.assert_array_equal(drawn["h"], drawn["X"] @ drawn["p"])
    assert np.sort(drawn["y"])[-2:].tolist() == [0.0, 1.0]


DERIVATION = {"arrays": {"x": [["n"], "real"], "y": [["n"], "real"], "A": [["m", "n"], "real"]}, "through": [],
              "first": "np.sum((x + y) ** 2)", "last": "np.sum(x**2) + 2 * np.sum(x * y) + np.sum(y**2)",
              "between": 1}  # fmt: skip


@pytest.mark.parametrize(
    ("between", "said"),
    [
        ("np.sum(x**2) + np.sum(y**2)", "line 2 is not equal to line 1"),
        ("(x + y) ** 2", "it has shape"),
        ("np.sum(x**2 + 2 * x * y + y**2) * np.ones(1)", "it has shape"),
        ("np.sum(z)", "line 2 uses `z`; the names are x, y, A, m, n"),
        ("np.sum(x +", "line 2 is no expression"),
        ("x @ A", "line 2 cannot be computed"),
        ("np.exp(x, y)", "line 2 cannot be computed"),  # would write into y
        ("np.log(-abs(x))", "line 2 calls `abs`"),
        ("np.log(-1.0)", "line 2 is not equal"),
    ],
)
def test_the_first_false_line_is_named_with_its_reason(between, said):
    verdict = derivation.assess(DERIVATION, (), [DERIVATION["first"], between, DERIVATION["last"]])
    assert verdict.share == 0
    assert said in verdict.reason


def test_a_slip_is_named_wherever_its_false_line_appears():
    slip = ([DERIVATION["first"], "np.sum(x**2) + np.sum(y**2)", DERIVATION["last"]], "The square of a sum …")
    true = "np.sum((y + x) ** 2)"
    said = derivation.assess(DERIVATION, [slip], [DERIVATION["first"], true, "np.sum(x * x + y * y)"])
    assert said.replies == ("The square of a sum …",)
    assert "line 3 is not equal to line 2" in said.reason


@pytest.mark.parametrize(
    "hostile",
    [
        "__import__('os').system('true')", "x.__class__", "(lambda: 1)()", "[i for i in x]", "np.load('f')", "ml.norm",
        "np.linalg", "x.tofile('f')", "np.ones((100000, 100000))", "np.eye(10**6)", "9" * 390, "x" * 500,
        "np.outer(np.outer(np.outer(np.outer(x, x), x), x), x)", "-" * 300 + "x", "x\0", "'a'",
        "np.where(np.ones((500,1,1)), np.ones((1,500,1)), np.ones((1,1,500)))", "np.sum(np.ones((0,10**8)), axis=0)",
        "np.zeros((300,0)) @ np.zeros((0,300000))", "np.ones((2,2,2))[{0}.reshape((500,1,1)),{0}.reshape((500,1)),{0}]",
        "np.sum(x, out=y)", "f'{x}'", "x if x else x", "*x", "x := 1", "1j", "np.float64", "np.sum.__self__", "len", "",
    ],
)  # fmt: skip
def test_nothing_but_arithmetic_of_named_arrays_is_computed(hostile):
    names = {"x": np.arange(1.0, 7.0), "y": np.ones(6)}
    hostile = hostile.replace("{0}", "np.argmax(np.ones((2,500)),axis=0)")
    tracemalloc.start()
    with pytest.raises(ExpressionError):
        compute(parse(hostile), names)
    assert tracemalloc.get_traced_memory()[1] < 100_000_000
    tracemalloc.stop()


# choice


@pytest.mark.parametrize("id", CHOICES)
def test_every_option_has_its_reply(id):
    options = record_of(id)
    for option in options:
        answer = (option["low"] + option["high"]) / 2 if "low" in option else option["label"]
        marks = check(id, answer).marks
        assert option["reply"] in (*marks.mistakes, *marks.remarks)
        assert (marks.points > 0) == option["right"]
    assert check(id, item(id).expected()).passed


SEVERAL = [{"label": label, "text": "", "right": label in "AC", "reply": label.lower()} for label in "ABCD"]
SCALE = [
    {"low": 0.0, "high": 2.0, "right": False, "reply": "low"},
    {"low": 2.0, "high": 5.0, "right": True, "reply": "yes"},
]


@pytest.mark.parametrize(
    ("answer", "share"),
    [("AC", 1), ("c a", 1), (["C", "A", "A"], 1), ("A", 0.5), ("ACB", 0.5), ("AB", 0), ("ABCD", 0), ("B", 0), ("E", 0)],
)
def test_several_right_options_lose_a_part_for_each_error(answer, share):
    assert choosing.assess(SEVERAL, answer).share == share


def test_two_replies_say_which_option_each_is_about():
    assert choosing.assess(SEVERAL, "B D").replies == ("B: b", "D: d")
    assert choosing.assess(SEVERAL, "A B").replies == ("b",)


@pytest.mark.parametrize("answer", ["A or C", "a or c", "A and C", "option A", "the answer is C"])
def test_words_are_not_read_as_letters(answer):
    assert choosing.assess(SEVERAL, answer).reason == 'the answer is all right letters in a string, such as "A B"'
    verdict = item(CHOICES[0]).checks[0].assess(answer)
    assert verdict.reason == 'the answer is a letter in a string, such as "A"'


@pytest.mark.parametrize(
    ("answer", "share", "said"), [(3, 1, "yes"), (2.0, 1, "yes"), (1, 0, "low"), (np.float64(1.5), 0, "low")]
)
def test_a_number_on_a_scale_gets_the_reply_of_its_interval(answer, share, said):
    assert choosing.assess(SCALE, answer) == (verdict := choosing.assess(SCALE, float(answer)))
    assert (verdict.share, verdict.replies) == (share, (said,))


@pytest.mark.parametrize("answer", [float("nan"), float("inf"), -1, 6, "many", [2, 3], None])
def test_what_is_not_on_the_scale_earns_nothing(answer):
    assert choosing.assess(SCALE, answer).share == 0


def test_an_exercise_that_points_to_another_names_it_as_the_page_does():
    named = re.findall(r"exercise \*([^*]+)\*", " ".join(f"{entry.source} {entry.task}" for entry in items()))
    assert named
    assert {*named} <= {entry.title for entry in items()}
