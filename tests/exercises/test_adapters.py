"""One submission graded for Gradescope and for GitHub Classroom, in their documented formats."""

import base64
import json
import os
import subprocess

import nbformat
import pytest
import yaml
from click.testing import CliRunner
from grading import EXERCISES, PATH, answered
from mathllm_course.__main__ import main
from mathllm_exercises import items

pytestmark = pytest.mark.slow
NAME = "01_vectors"
ASKED = [entry for entry in items("01") if entry.graded and entry.kind != "text"]
NORM = next(entry for entry in ASKED if entry.grade_id == "01-vectors-norm")


SOURCE = EXERCISES / "source" / NAME / f"{NAME}.ipynb"
WORKFLOW = yaml.safe_load((EXERCISES / "mathllm_course" / "classroom.yml").read_text(encoding="utf-8"))
(JOB,) = WORKFLOW["jobs"].values()
MAKE, GRADE, REPORT = JOB["steps"][-3:]


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory):
    """The model solution, with a wrong answer to one exercise."""
    folder = tmp_path_factory.mktemp("submission")
    squared = {"01-vectors-norm-answer": "def norm(x):\n    return np.sum(x * x, axis=-1)"}
    nbformat.write(answered(SOURCE, squared), folder / f"{NAME}.ipynb")
    (folder / "metadata.json").write_text('{"users": [{"email": "ada@example.org", "id": 1, "name": "Ada"}]}')
    return folder


@pytest.fixture(scope="module")
def runner(handed_in, tmp_path_factory, sandboxed):
    """The folder of a runner of GitHub, which has made a course and graded a push."""
    folder = tmp_path_factory.mktemp("runner")
    (folder / "out").write_text("before=1\n")
    places = {"RUNNER_TEMP": str(folder), "GITHUB_WORKSPACE": str(handed_in), "GITHUB_OUTPUT": str(folder / "out")}
    places |= {"PATH": PATH, "ASSIGNMENT": WORKFLOW["env"]["ASSIGNMENT"], "LEARNER": "ada"}
    for step in (MAKE, GRADE):
        command = ["bash", "-e", "-c", step["run"]]
        done = subprocess.run(command, env=os.environ | places, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def gradescope(runner, handed_in, tmp_path, monkeypatch):
    """Grade the submission in the same course for Gradescope: what was said, and the file of the results."""
    monkeypatch.chdir(runner / "course")

    def grade(users, code=0):
        arguments = ["grade-one", "01", str(handed_in), str(users), "--to", "gradescope"]
        result = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / "results.json")])
        assert result.exit_code == code, result.output
        return result.output, tmp_path / "results.json"

    return grade


def test_gradescope_gets_a_test_for_each_exercise_with_its_points(gradescope, handed_in):
    found = json.loads(gradescope(handed_in / "metadata.json")[1].read_text(encoding="utf-8"))
    assert found.keys() == {"score", "stdout_visibility", "tests"}
    assert [(test["name"], test["max_score"]) for test in found["tests"]] == [(e.title, e.points) for e in ASKED]
    assert found["score"] == sum(test["score"] for test in found["tests"])
    (less,) = [test for test in found["tests"] if test["score"] < test["max_score"]]
    assert (less["name"], less["output_format"]) == (NORM.title, "text")
    assert "square root" in less["output"]


def test_the_workflow_for_classroom_grades_a_push_and_hands_the_result_to_the_reporter(runner):
    assert GRADE["env"] == {"LEARNER": "${{ github.actor }}"}
    assert REPORT["with"]["runners"] == GRADE["id"]
    assert REPORT["env"] == {f"{GRADE['id'].upper()}_RESULTS": f"${{{{ steps.{GRADE['id']}.outputs.result }}}}"}
    before, line = (runner / "out").read_text().splitlines()
    assert before == "before=1"
    found = json.loads(base64.b64decode(line.removeprefix("result=")))
    assert found.keys() == {"version", "status", "max_score", "tests"}
    assert [test["name"].rpartition(": ")[0] for test in found["tests"]] == [entry.title for entry in ASKED]
    wrong = [test["name"].rpartition(": ")[0] for test in found["tests"] if test["status"] == "fail"]
    assert (found["status"], wrong) == ("fail", [NORM.title])
    assert found["max_score"] == sum(entry.points for entry in ASKED) > sum(test["score"] for test in found["tests"])


def test_a_name_that_leads_out_of_the_course_is_refused(gradescope, tmp_path):
    (users := tmp_path / "metadata.json").write_text('{"users": [{"email": "../../ada@example.org"}]}')
    said, results = gradescope(users, code=1)
    assert "cannot be the id" in said
    assert not results.exists()
