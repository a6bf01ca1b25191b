"""The whole road with nbgrader's own commands: an assignment goes out, comes back, and is graded.

One course is run once for all tests here. The account that runs the tests fetches, submits and is collected like any
learner; on one account nbgrader can collect nobody else, so the other submission is put where collect puts them.
What attacks earn is in test_hostile.py, what a release may not hold in test_assignments.py.
"""

import csv

import nbformat
import pytest
from grading import answered, grade_id, hand_in, make_course, nbgrader
from mathllm_exercises import item, items
from mathllm_grading import feedback
from nbgrader.utils import get_username

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

NAME = "01_vectors"
NORM = "01-vectors-norm"
ME = get_username()
GRADED = [entry for entry in items("01") if entry.graded]
BY_PROGRAM = sum(entry.points for entry in GRADED if entry.kind != "text")
MISTAKEN = {
    f"{NORM}-answer": "def norm(x):\n    return np.sum(x * x, axis=-1)",
    "01-vectors-distance-answer": "def distance(a, b):\n    return ml.vectors.distance(a, b)",
    "01-vectors-length_by_hand-answer": "squares_and_length = [49, 49]",
    "01-vectors-line_or_plane": "Because three points do not fit on a line.",
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course that has been through the whole cycle, and the learner's home."""
    root, exchange = tmp_path_factory.mktemp("course"), tmp_path_factory.mktemp("exchange")
    home = tmp_path_factory.mktemp("learner")
    exchange.chmod(0o1777)
    make_course(root, NAME, key=None)
    here = {"MATHLLM_EXCHANGE": str(exchange)}
    there = f"--course mathllm --Exchange.root={exchange}"
    cache = {"JUPYTER_DATA_DIR": str(tmp_path_factory.mktemp("data"))}  # where nbgrader remembers what was handed in

    nbgrader(f"generate_assignment {NAME}", root, **here)
    nbgrader(f"release_assignment {NAME}", root, **here)
    nbgrader(f"fetch_assignment {NAME} {there}", home)

    mine, source = home / NAME / f"{NAME}.ipynb", nbformat.read(root / "source" / NAME / f"{NAME}.ipynb", 4)
    right = {grade_id(cell): cell.source for cell in source.cells if grade_id(cell).endswith("-answer")}
    hand_in(root, "mistaken", answered(mine, right | MISTAKEN))
    nbformat.write(answered(mine, right), mine)
    nbgrader(f"submit {NAME} {there}", home, **cache)
    nbgrader(f"collect {NAME}", root, **here)

    nbgrader(f"autograde {NAME}", root, **here)
    nbgrader(f"generate_feedback {NAME}", root, **here)
    nbgrader(f"release_feedback {NAME} --student {ME}", root, **here)  # the only one who has been to the exchange
    nbgrader(f"fetch_feedback {NAME} {there}", home, **cache)
    nbgrader("export", root, **here)
    return root, home


@pytest.fixture(scope="module")
def page(course):
    """The page of feedback for the one who made mistakes."""
    return (course[0] / "feedback" / "mistaken" / NAME / f"{NAME}.html").read_text(encoding="utf-8")


def lost(id, word):
    """The points that a known mistake costs."""
    return item(id).points - next(mistake.score for mistake in item(id).mistakes if word in mistake.sentence)


def test_right_answers_earn_all_that_a_program_can_grade_and_mistakes_cost_what_their_cards_say(course):
    with open(course[0] / "grades.csv", newline="", encoding="utf-8") as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    costs = lost("01.vectors.norm", "square root is missing") + lost("01.vectors.length_by_hand", "still the sum")
    costs += item("01.vectors.distance").points  # the package's own function earns nothing
    assert scores == {ME: BY_PROGRAM, "mistaken": BY_PROGRAM - costs}


def test_the_rubric_is_shown_to_the_grader_and_not_in_the_feedback(course, page):
    criterion = item("01.vectors.line_or_plane").rubric[0][1]
    autograded = (course[0] / "autograded" / "mistaken" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")
    assert criterion in autograded
    assert "Rubric" not in page
    assert criterion not in page


def test_feedback_names_the_mistake_goes_by_titles_and_tells_what_is_not_read_yet(page):
    assert "This is the squared length: the square root is missing." in page
    assert "norm([3, 4])" in page
    text = item("01.vectors.line_or_plane")
    assert f">{item('01.vectors.norm').title}</a>: 0.0 of " in page
    assert f">{text.title}</a>: not read yet, of {text.points:.1f}" in page
    assert "1 written answer not read yet" in page
    assert "Test cell" not in page
    assert "No response" not in page


def test_feedback_arrives_at_the_learner_shows_its_formulas_and_loads_nothing(course, page):
    assert list((course[1] / NAME / "feedback").rglob("*.html"))
    assert page.count("<math") > 10
    for loading in ("<script", "<link", "src=", "@import", "url(http"):
        assert loading not in page.replace('src="data:', ""), loading


def test_feedback_says_where_the_solutions_are_with_a_link_where_the_site_is_known(page, monkeypatch):
    assert "unfolds on its card in the exercises at the end of chapter 01" in page
    monkeypatch.setenv("MATHLLM_SITE", "https://example.org/book/")
    assert 'href="https://example.org/book/notebooks/06_softmax.html"' in feedback._solutions("06_softmax")


def test_a_graded_cell_ends_as_feedback_and_one_plain_number(course):
    for learner in (ME, "mistaken"):
        notebook = nbformat.read(course[0] / "autograded" / learner / NAME / f"{NAME}.ipynb", 4)
        graded = [cell for cell in notebook.cells if cell.source.startswith("check(")]
        assert len(graded) == sum(entry.kind != "text" for entry in GRADED)
        for cell in graded:
            stream, result = cell.outputs
            assert (stream.output_type, stream.name, result.output_type) == ("stream", "stdout", "execute_result")
            assert 0 <= float(result.data["text/plain"]) <= cell.metadata.nbgrader["points"]
