"""One submission graded for Gradescope and for GitHub Classroom, in their documented formats."""

import base64
import json
import os
import subprocess

import nbformat
import pytest
import yaml
from click.testing import CliRunner
from grading import EXERCISES, PATH, answered, generated
from mathllm_course.__main__ import main
from mathllm_exercises import items

pytestmark = pytest.mark.slow
NAME = "01_vectors"
ASKED = [entry for entry in items("01") if entry.graded and entry.kind != "text"]
NORM = next(entry for entry in ASKED if entry.grade_id == "01-vectors-norm")


@pytest.fixture(scope="module")
def inside(tmp_path_factory, sandboxed):
    root = generated(tmp_path_factory.mktemp("course"), NAME)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        yield root


@pytest.fixture(scope="module")
def handed_in(inside, tmp_path_factory):
    """The model solution, with a wrong answer to one exercise."""
    folder = tmp_path_factory.mktemp("submission")
    squared = {"01-vectors-norm-answer": "def norm(x):\n    return np.sum(x * x, axis=-1)"}
    nbformat.write(answered(inside / "source" / NAME / f"{NAME}.ipynb", squared), folder / f"{NAME}.ipynb")
    (folder / "metadata.json").write_text('{"users": [{"email": "ada@example.org", "id": 1, "name": "Ada"}]}')
    return folder


def grade(folder, learner, system, output, code=0, assignment=NAME):
    arguments = ["grade-one", assignment, str(folder), learner, "--to", system, "-o", str(output)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result.output


def test_gradescope_gets_a_test_for_each_exercise_with_its_points(handed_in, tmp_path):
    grade(handed_in, str(handed_in / "metadata.json"), "gradescope", tmp_path / "results.json")
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert found.keys() == {"score", "stdout_visibility", "tests"}
    assert [(test["name"], test["max_score"]) for test in found["tests"]] == [(e.title, e.points) for e in ASKED]
    assert found["score"] == sum(test["score"] for test in found["tests"])
    less = [test for test in found["tests"] if test["score"] < test["max_score"]]
    assert [test["name"] for test in less] == [NORM.title]
    assert less[0]["output_format"] == "text"
    assert "square root" in less[0]["output"]


def test_classroom_gets_what_its_reporter_reads(handed_in, tmp_path):
    output = tmp_path / "github_output"
    output.write_text("before=1\n")
    grade(handed_in, "ada", "classroom", output, assignment="01")
    first, line = output.read_text().splitlines()
    assert first == "before=1"
    found = json.loads(base64.b64decode(line.removeprefix("result=")))
    assert found.keys() == {"version", "status", "max_score", "tests"}
    assert found["status"] == "fail"
    assert found["max_score"] == sum(entry.points for entry in ASKED)
    wrong = [test for test in found["tests"] if test["status"] == "fail"]
    assert [test["name"].partition(":")[0] for test in wrong] == [NORM.title]
    assert found["max_score"] - sum(test["score"] for test in found["tests"]) > 0


def test_the_workflow_for_classroom_grades_a_push_and_hands_the_result_to_the_reporter(handed_in, tmp_path):
    workflow = yaml.safe_load((EXERCISES / "mathllm_course" / "classroom.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    make, grading, reporter = job["steps"][-3:]
    places = {"RUNNER_TEMP": str(tmp_path), "GITHUB_WORKSPACE": str(handed_in), "GITHUB_OUTPUT": str(tmp_path / "out")}
    places |= {"PATH": PATH, "ASSIGNMENT": workflow["env"]["ASSIGNMENT"], "LEARNER": "ada"}
    assert grading["env"] == {"LEARNER": "${{ github.actor }}"}
    for step in (make, grading):
        command = ["bash", "-e", "-c", step["run"]]
        done = subprocess.run(command, env=os.environ | places, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert reporter["with"]["runners"] == grading["id"]
    assert reporter["env"] == {f"{grading['id'].upper()}_RESULTS": f"${{{{ steps.{grading['id']}.outputs.result }}}}"}
    found = json.loads(base64.b64decode((tmp_path / "out").read_text().removeprefix("result=")))
    assert [test["name"].rpartition(": ")[0] for test in found["tests"]] == [entry.title for entry in ASKED]


def test_a_name_that_leads_out_of_the_course_is_refused(inside, handed_in, tmp_path):
    (users := tmp_path / "metadata.json").write_text('{"users": [{"email": "../../ada@example.org"}]}')
    assert "cannot be the id" in grade(handed_in, str(users), "gradescope", tmp_path / "x.json", code=1)
    assert not (tmp_path / "x.json").exists()
