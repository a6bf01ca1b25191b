"""The whole road with nbgrader's own commands: an assignment goes out, comes back, and is graded.

One course is run once for all tests here. The account that runs the tests fetches, submits and is collected like any
learner; on one account nbgrader can collect nobody else, so the other submissions are put where collect puts them.
What attacks earn is in test_hostile.py.
"""

import copy
import csv
import sqlite3

import nbformat
import pytest
from grading import make_course, nbgrader
from mathllm_exercises import item, items
from nbgrader.utils import get_username

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

NAME = "01_vectors"
NORM = "01-vectors-norm"
ME = get_username()


def answered(notebook, answers):
    """A copy of a notebook with these answers, by grade id."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(grade_id, cell.source)
    return notebook


def submissions(released, right):
    """Each learner's notebook."""
    squared = "def norm(x):\n    return np.sum(x * x, axis=-1)"
    mistaken = right | {
        f"{NORM}-answer": squared,
        "01-vectors-length_by_hand-answer": "squares_and_length = [49, 49]",
        "01-vectors-line_or_plane": "Because three points do not fit on a line.",
    }
    return {
        "blank": released,
        "mistaken": answered(released, mistaken),
        "borrowed": answered(released, {
            f"{NORM}-answer": "from mathllm import norm",
            "01-vectors-distance-answer": "def distance(a, b):\n    return ml.vectors.distance(a, b)",
            "01-vectors-frobenius_norm-answer": "def frobenius_norm(W):\n    return W[..., 0, 0] * np.nan",
        }),
    }  # fmt: skip


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course that has been through the whole cycle."""
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

    source = nbformat.read(root / "source" / NAME / f"{NAME}.ipynb", 4)
    released = nbformat.read(home / NAME / f"{NAME}.ipynb", 4)
    known = {cell.metadata["nbgrader"]["grade_id"]: cell for cell in source.cells if "nbgrader" in cell.metadata}
    right = {name: cell.source for name, cell in known.items() if cell.metadata.nbgrader["solution"]}
    nbformat.write(answered(released, right), home / NAME / f"{NAME}.ipynb")
    nbgrader(f"submit {NAME} {there}", home, **cache)
    nbgrader(f"collect {NAME}", root, **here)
    for learner, notebook in submissions(released, right).items():
        folder = root / "submitted" / learner / NAME
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{NAME}.ipynb")

    nbgrader(f"autograde {NAME}", root, **here)
    nbgrader(f"generate_feedback {NAME}", root, **here)
    nbgrader(f"release_feedback {NAME} --student {ME}", root, **here)  # the only one who has been to the exchange
    nbgrader(f"fetch_feedback {NAME} {there}", home, **cache)
    nbgrader("export", root, **here)
    return root, home, right


@pytest.fixture(scope="module")
def scores(course):
    with open(course[0] / "grades.csv", newline="", encoding="utf-8") as file:
        return {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}


GRADED = [entry for entry in items("01") if entry.graded]
BY_PROGRAM = sum(entry.points for entry in GRADED if entry.kind != "text")


def graded_cells(course, learner):
    notebook = nbformat.read(course[0] / "autograded" / learner / NAME / f"{NAME}.ipynb", 4)
    return {
        cell.metadata.nbgrader["grade_id"]: cell
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade")
    }


def grades(course, column):
    """{learner: {grade id: value}} from the gradebook."""
    query = f"""
        SELECT student_id, base_cell.name, {column} FROM grade
        JOIN base_cell ON grade.cell_id = base_cell.id
        JOIN submitted_notebook ON grade.notebook_id = submitted_notebook.id
        JOIN submitted_assignment ON submitted_notebook.assignment_id = submitted_assignment.id
    """
    result = {}
    with sqlite3.connect(course[0] / "gradebook.db") as database:
        for learner, name, value in database.execute(query):
            result.setdefault(learner, {})[name] = value
    database.close()
    return result


def mistake_score(id, word):
    return next(mistake.score for mistake in item(id).mistakes if word in mistake.sentence)


def test_a_right_submission_through_the_exchange_earns_everything_a_program_can_grade(scores):
    assert scores[ME] == BY_PROGRAM


def test_a_blank_submission_earns_nothing(scores):
    assert scores["blank"] == 0.0


def test_the_packages_own_functions_earn_nothing(scores):
    assert scores["borrowed"] == 0.0


def test_known_mistakes_cost_exactly_what_their_cards_say(scores):
    norm, by_hand = item("01.vectors.norm"), item("01.vectors.length_by_hand")
    lost = norm.points - mistake_score(norm.id, "square root is missing")
    lost += by_hand.points - mistake_score(by_hand.id, "still the sum of the squares")
    assert lost > 0
    assert scores["mistaken"] == BY_PROGRAM - lost


def test_the_gradebook_holds_a_number_for_everything_a_program_grades(course):
    by_hand = {entry.grade_id for entry in GRADED if entry.kind == "text"}
    learners = grades(course, "auto_score")
    assert set(learners) == {ME, "blank", "mistaken", "borrowed"}
    for learner, row in learners.items():
        assert set(row) == {entry.grade_id for entry in GRADED}, learner
        assert all(value is not None for name, value in row.items() if name not in by_hand), learner


def test_a_text_waits_for_its_grader_and_a_blank_one_does_not(course):
    waiting = grades(course, "needs_manual_grade")
    assert waiting["mistaken"]["01-vectors-line_or_plane"]
    assert not waiting["blank"]["01-vectors-line_or_plane"]
    assert not any(waiting["blank"].values())


def test_the_rubric_is_shown_to_the_grader_and_to_nobody_else(course):
    root = course[0]
    criterion = item("01.vectors.line_or_plane").rubric[0][1]
    autograded = nbformat.read(root / "autograded" / "mistaken" / NAME / f"{NAME}.ipynb", 4)
    assert any(criterion in cell.source for cell in autograded.cells)
    feedback = (root / "feedback" / "mistaken" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    for text in (feedback, (root / "release" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")):
        assert "Rubric" not in text
        assert criterion not in text


def test_feedback_names_the_mistake_and_arrives_at_the_learner(course):
    root, home, _ = course
    feedback = (root / "feedback" / "mistaken" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "This is the squared length: the square root is missing." in feedback
    assert list((home / NAME / "feedback").rglob("*.html"))


def test_feedback_shows_its_formulas_and_loads_nothing(course):
    feedback = (course[0] / "feedback" / ME / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert feedback.count("<math") > 10
    for loading in ("<script", "<link", "src=", "@import", "url(http"):
        assert loading not in feedback.replace('src="data:', ""), loading


def test_feedback_shows_the_failing_example(course):
    text = graded_cells(course, "mistaken")[NORM].outputs[0].text
    assert "norm([3, 4])" in text


def test_feedback_has_titles_tells_what_is_not_read_yet_and_where_the_solutions_are(course):
    feedback = (course[0] / "feedback" / ME / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "Test cell" not in feedback
    assert f">{item('01.vectors.norm').title}</a>" in feedback
    assert f">{item('01.vectors.line_or_plane').title}</a>: not read yet" in feedback
    assert "unfolds on its card in the exercises at the end of chapter 01" in feedback


def test_a_graded_cell_ends_as_feedback_and_one_plain_number(course):
    for learner in (ME, "mistaken", "borrowed"):
        for cell in graded_cells(course, learner).values():
            stream, result = cell.outputs
            assert (stream.output_type, stream.name, result.output_type) == ("stream", "stdout", "execute_result")
            assert 0 <= float(result.data["text/plain"]) <= cell.metadata.nbgrader["points"]


def test_the_release_holds_no_solution(course):
    root, _, right = course
    released = nbformat.read(root / "release" / NAME / f"{NAME}.ipynb", 4)
    stubs = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell.source for cell in released.cells}
    assert not any("SOLUTION" in cell.source for cell in released.cells)
    cards = "\n".join(cell.source for cell in released.cells if cell.cell_type == "markdown")  # with the broken code
    for name, source in right.items():
        if "### BEGIN SOLUTION" in source:
            solution = source.split("### BEGIN SOLUTION")[1].split("### END SOLUTION")[0]
            lines = [line for line in solution.strip().splitlines() if line.strip() and '"""' not in line]
            secret = [line for line in lines if line not in cards]
            assert secret
            assert not any(line in stubs[name] for line in secret)
            assert "# your code here" in stubs[name]
        else:
            assert stubs[name] == "*Your answer here.*"


def test_the_course_key_is_made_once_and_only_the_instructor_can_read_it(course):
    key = course[0] / ".course_key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(key.read_text()) == 64
