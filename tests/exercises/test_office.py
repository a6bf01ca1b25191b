"""The course office: learners in, grades out, more time for one, and what was uploaded elsewhere."""

import csv
import json
import os
import re
import shutil
from datetime import datetime

import nbformat
import numpy as np
import pytest
from click.testing import CliRunner
from grading import EXERCISES, PATH, answered, generated, hand_in
from mathllm_course import report
from mathllm_course.__main__ import main
from mathllm_course.exchange import ReleaseAssignment
from mathllm_course.platform import read_learners
from mathllm_exercises import check, item, recorded
from mathllm_grading import gradebook, sandbox
from mathllm_grading.__main__ import main as grading
from mathllm_grading.run import open_course
from nbgrader.coursedir import CourseDirectory
from package import outside
from traitlets.config import Config

NAME = "01_vectors"
MOODLE = """First name,Last name,ID number,Email address,Groups
Ada,Lovelace,4711,ada@example.org,A
Alan,Turing,4712,alan@example.org,B
"""
CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,01_vectors (998),Final Score
    Points Possible,,,,,100,(read only)
"Lovelace, Ada",31,s31,ada,S1,,
"Turing, Alan",32,s32,alan,S1,50,
"Student, Test",33,,,S1,,
"""


@pytest.fixture(scope="module")
def three_exercises(tmp_path_factory):
    asked = ("01-2", "01-vectors-length_by_hand", "01-vectors-norm", "01-vectors-own_length")
    return generated(tmp_path_factory.mktemp("generated"), NAME, asked)


@pytest.fixture
def inside(three_exercises, tmp_path, monkeypatch):
    """A course in which nobody is enrolled yet, and we are in its folder."""
    root = shutil.copytree(three_exercises, tmp_path / "course")
    monkeypatch.chdir(root)
    (root / "moodle.csv").write_text(MOODLE, encoding="utf-8-sig")
    (root / "canvas.csv").write_text(CANVAS)
    return root


def office(*arguments, code=0):
    """Run a command in the folder we are in; what it prints."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize(("program", "command"), [(one, name) for one in (main, grading) for name in one.commands])
def test_each_command_explains_itself(program, command):
    result = CliRunner().invoke(program, [command, "--help"])
    assert result.output.startswith("Usage:")
    assert (result.exit_code, "Error" in result.output) == (0, False)


def book(root):
    return gradebook.opened(CourseDirectory(root=str(root), course_id="mathllm"))


def graded(root, learner, *points, late=None):
    """A learner's work, graded with these points."""
    with book(root) as opened:
        entry = gradebook.entry_of(opened, NAME, learner)
        grades = sorted(entry.notebooks[0].grades, key=lambda grade: grade.cell.name)
        for grade, score in zip(grades, points, strict=True):
            grade.auto_score, grade.needs_manual_grade = score, False
        entry.notebooks[0].late_submission_penalty = late
        opened.db.commit()


def test_a_course_is_made_where_nothing_is_yet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "generate_assignment 01_vectors" in office("init", "course")
    assert (tmp_path / "course").stat().st_mode & 0o777 == 0o700
    assert {path.name for path in (tmp_path / "course").iterdir()} == {"nbgrader_config.py", "source"}
    assert len(list((tmp_path / "course").glob("source/*/*.ipynb"))) == 18
    assert "course is not empty" in office("init", "course", code=1)
    monkeypatch.chdir(tmp_path / "course")
    assert open_course()[0].root == str(tmp_path / "course")


def test_a_doctor_says_what_is_wrong_and_how_to_mend_it(inside, monkeypatch, tmp_path):
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    monkeypatch.setenv("MATHLLM_EXCHANGE", str(exchange))
    monkeypatch.setenv("PATH", PATH)
    inside.chmod(0o700)
    (inside / ".course_key").chmod(0o600)
    exchange.chmod(0o1777)
    monkeypatch.setattr(sandbox, "problem", lambda: None)
    healthy = office("doctor")
    assert re.findall(r"^(\w+)", healthy, re.MULTILINE) == ["ok"] * 6
    inside.chmod(0o755)
    (inside / ".course_key").chmod(0o644)
    exchange.chmod(0o777)
    (inside / "gradebook.db").write_bytes(b"damaged")
    monkeypatch.setattr(sandbox, "problem", lambda: "apt install bubblewrap")
    monkeypatch.setenv("PATH", "/nowhere")
    shown = office("doctor", code=1)
    assert re.findall(r"^(\w+)", shown, re.MULTILINE) == ["MEND"] * 6
    for remedy in ("apt install", "chmod 1777", "chmod 700", "chmod 600", "restore", "activate"):
        assert remedy in shown


def test_grading_knows_nothing_of_the_office():
    assert "mathllm_course" not in outside((EXERCISES / "mathllm_grading").rglob("*.py"), {"mathllm"})


def test_the_edition_to_hand_out_holds_the_numbers_of_the_class_and_the_released_assignments(inside):
    assert "nobody is enrolled yet" in office("edition", "handout", code=1)
    office("enrol", "moodle.csv")
    assert "the edition for 2 learners" in office("edition", "handout")
    assert [path.name for path in (inside / "handout" / "assignments").iterdir()] == [NAME]
    records = json.loads((inside / "handout" / "exercises" / "mathllm_exercises" / "bank.json").read_text())
    shares = next(record for record in records if record["id"] == "06.softmax.own_shares")
    assert shares["own"].keys() == {recorded.digest(learner, shares["id"]) for learner in ("ada", "alan")}
    assert "name a new folder" in office("edition", "handout", code=1)


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("file", "platform", "lms"), [("moodle.csv", "Moodle", "4711"), ("canvas.csv", "Canvas", "31")]
)
def test_learners_of_a_platform_are_enrolled_once(inside, file, platform, lms):
    assert f"2 learners of {platform}, 2 of them new" in office("enrol", file)
    assert "0 of them new" in office("enrol", file)
    with book(inside) as opened:
        ada = opened.find_student("ada")
        assert (ada.first_name, ada.last_name, ada.lms_user_id) == ("Ada", "Lovelace", lms)
        assert len(opened.students) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,mark\nAda,1\n", "no column 'Student' \\(Canvas\\)"),
        ("", "its columns are none"),
        ("id\nada\nada\n", "line 3: the id 'ada' occurs twice"),
        ("id\n../ada\n", "line 2: '../ada' cannot be a learner's id"),
        ("id\n.ada\n", "cannot be a learner's id"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_before_anybody_is_enrolled(tmp_path, text, message):
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_learners(tmp_path / "list.csv")


def test_a_column_of_ids_can_be_named(inside):
    assert set(read_learners("moodle.csv", "ID number").by_id) == {"4711", "4712"}
    assert "no column 'Matrikel'" in office("enrol", "moodle.csv", "--id", "Matrikel", code=1)


def test_grades_go_back_in_the_form_of_the_platform(inside):
    office("enrol", "canvas.csv")
    graded(inside, "ada", 1.0, 0.5, 0.0, late=0.25)
    said = office("grades", "canvas.csv", "-o", "back.csv")
    assert "1 of 2 learners of Canvas, 1 column\n" in said
    possible, ada, alan = rows("back.csv")
    assert list(ada) == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "01_vectors (998)"]
    assert possible["Student"] == "    Points Possible"
    assert float(possible["01_vectors (998)"]) > 0
    assert (ada["ID"], ada["01_vectors (998)"]) == ("31", "1.25")
    assert alan["01_vectors (998)"] == ""  # nothing is graded: what the platform holds stays


def test_grades_of_single_items_and_for_moodle(inside):
    office("enrol", "moodle.csv")
    graded(inside, "alan", 1.0, 0.5, 0.0)
    office("grades", "moodle.csv", "--items", "-o", "items.csv", "-a", NAME)
    ada, alan = rows("items.csv")
    assert list(alan)[:4] == ["First name", "Last name", "ID number", "Email address"]
    assert [alan[name] for name in sorted(alan) if name.startswith(NAME)] == ["1", "0.5", "0"]
    assert all(ada[name] == "" for name in ada if name.startswith(NAME))
    assert "did you mean 01_vectors?" in office("grades", "moodle.csv", "-a", "01_vector", code=1)


def test_a_learner_gets_more_time(inside):
    office("enrol", "moodle.csv")
    assert "has no deadline" in office("extend", "ada", NAME, "2d", code=1)
    with book(inside) as opened:
        opened.find_assignment(NAME).duedate = datetime(2026, 11, 20, 12)
        opened.db.commit()
    assert "until 2026-11-22 12:00 UTC" in office("extend", "ada", NAME, "2d")
    assert "until 2026-11-20 12:00 UTC" in office("extend", "ada", "01", "0d")  # short for its name
    assert "is no length of time" in office("extend", "ada", NAME, "soon", code=1)
    assert "there is no learner 'eda'" in office("extend", "eda", NAME, "2d", code=1)


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("moodle.csv", "Ada Lovelace_99_assignsubmission_file/01_vectors.ipynb"),
        ("moodle.csv", "Ada Lovelace_99_assignsubmission_file_01_vectors.ipynb"),
        ("canvas.csv", "lovelaceada_31_777_01_vectors.ipynb"),
        ("canvas.csv", "lovelaceada_LATE_31_777_01_vectors-2.ipynb"),
    ],
)
def test_what_was_uploaded_is_collected(inside, tmp_path, file, place):
    office("enrol", file)
    uploaded = tmp_path / "all" / place
    uploaded.parent.mkdir(parents=True)
    uploaded.write_text("{}")
    os.utime(uploaded, (1_700_000_000, 1_700_000_000))
    assert "1 of 1 taken" in office("collect", str(tmp_path / "all"), NAME)
    handed_in = inside / "submitted" / "ada" / NAME
    assert (handed_in / f"{NAME}.ipynb").read_text() == "{}"
    assert (handed_in / "timestamp.txt").read_text().startswith("2023-11-14 22:13:20")
    assert "there already" in office("collect", str(tmp_path / "all"), NAME)
    uploaded.write_text('{"again": 1}')
    office("collect", str(tmp_path / "all"), NAME)
    assert "again" in (handed_in / f"{NAME}.ipynb").read_text()
    assert sorted(path.name for path in handed_in.parent.iterdir()) == [NAME]


@pytest.mark.parametrize(
    ("names", "code", "said"),
    [
        (["Eve Stranger_1"], 1, "Eve Stranger_1_assignsubmission_file/01_vectors.ipynb: no learner is known"),
        (["Eve\x9b S_1"], 1, "Eve S_1_assignsubmission_file/01_vectors.ipynb: no learner is known"),
        (["Ada Lovelace_2"], 0, "0 of 0 taken"),  # the file is a link
        (["Ada Lovelace_1", "Ada Lovelace_3"], 1, "ada: not taken: two participants have this name"),
    ],
)
def test_what_belongs_to_nobody_or_to_two_and_what_is_a_link_is_not_collected(inside, tmp_path, names, code, said):
    """Moodle names the folders of a download by the names of the participants, which these may change."""
    office("enrol", "moodle.csv")
    (tmp_path / "secret.ipynb").write_text("secret")
    for name in names:
        path = tmp_path / "all" / f"{name}_assignsubmission_file" / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.symlink_to(tmp_path / "secret.ipynb") if name.endswith("2") else path.write_text(name)
    assert said in office("collect", str(tmp_path / "all"), NAME, code=code)
    assert not (inside / "submitted").exists()


@pytest.mark.parametrize(("rule", "late"), [("none", "is marked as late"), ("zero", "earns nothing")])
def test_a_notebook_that_is_released_says_until_when_it_may_be_handed_in(inside, tmp_path, rule, late):
    def release():
        shutil.rmtree(tmp_path / "exchange", ignore_errors=True)
        settings = Config({"LateSubmissionPlugin": {"penalty_method": rule}})
        directory = CourseDirectory(
            root=str(inside), course_id="mathllm", assignment_id=NAME, db_url=f"sqlite:///{inside}/gradebook.db"
        )
        ReleaseAssignment(coursedir=directory, root=str(tmp_path / "exchange"), config=settings).start()
        return nbformat.read(tmp_path / "exchange" / "mathllm" / "outbound" / NAME / f"{NAME}.ipynb", 4).cells

    plain = release()
    with book(inside) as opened:
        opened.find_assignment(NAME).duedate = datetime(2026, 11, 20, 12)
        opened.db.commit()
    first, *rest = release()
    assert first.source == f"**Hand in by Friday, 20 November 2026, 12:00 UTC.** Later work {late}."
    (file,) = (tmp_path / "exchange" / "mathllm" / "outbound" / NAME).glob("*.txt")
    assert file.name == "hand in by 2026-11-20 12.00 UTC.txt"
    assert file.read_text() == f"Hand in by Friday, 20 November 2026, 12:00 UTC. Later work {late}.\n"
    assert rest == plain


# Numbers about questions

SQUARED = "def norm(x):\n    return np.sum(x * x, axis=-1)"
SEVEN = "def norm(x):\n    return '<script>alert(1)</script>'"


def test_discrimination_is_the_correlation_with_the_other_items():
    item, rest = np.array([0.0, 0, 1, 1]), np.array([1.0, 2, 3, 5])
    expected = np.mean((item - 0.5) * (rest - 2.75)) / (item.std() * rest.std())
    assert report.discrimination(item, rest) == pytest.approx(expected)
    assert report.discrimination(np.ones(4), rest) is None
    assert report.discrimination(item[:2], rest[:2]) is None


def test_a_verdict_is_read_as_it_is_written():
    entry = item("01.vectors.norm")

    def read(answer):
        return report.read_text(str(check(entry.id, answer)), {mistake.sentence for mistake in entry.mistakes})

    checks, mistakes, others = read(lambda x: np.sum(x * x, axis=-1))
    assert checks == dict.fromkeys((check.name for check in entry.checks), False)
    assert [sentence for sentence in mistakes if "squared length" in sentence] == mistakes != []
    assert others == []
    checks, mistakes, others = read(lambda x: np.full(x.shape[:-1], 7.0))
    assert (mistakes, others) == ([], ["got 7"])
    checks, mistakes, others = read(lambda x: entry.expected(x))
    assert all(checks[check.name] for check in entry.checks)


@pytest.mark.slow
def test_a_report_counts_what_was_solved_and_which_mistakes_were_made(inside, monkeypatch):
    assert "nobody is graded in 01_vectors" in office("report", NAME, code=1)
    for learner, answer in {"ada": None, "bob": SQUARED, "eve": SQUARED, "zoe": SEVEN}.items():
        given = {"01-vectors-norm-answer": answer} if answer else {}
        hand_in(inside, learner, answered(f"source/{NAME}/{NAME}.ipynb", given))
    monkeypatch.setenv("MATHLLM_UNSANDBOXED", "yes")
    assert CliRunner().invoke(grading, ["grade", NAME]).exit_code == 0
    assert "report.html and report.csv" in office("report", NAME)
    found = {row["item"]: row for row in rows("report.csv")}
    assert found["01-vectors-norm"]["full_marks"] == "0.250"
    assert found["01-vectors-norm"]["learners"] == "4"
    page = (inside / "report.html").read_text()
    assert "2 made this mistake" in page
    assert "2026-11-20: 4 handed in" in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
