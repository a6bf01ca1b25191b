"""One submission graded for another system, in the format of its results.

Gradescope: https://gradescope-autograders.readthedocs.io/en/latest/specs/
GitHub Classroom: what `classroom-resources/autograding-grading-reporter` reads, JSON in base64 (see classroom.yml)
"""

import base64
import json
import re
import shutil
from pathlib import Path

from mathllm_exercises import item
from mathllm_grading.gradebook import assignment_called
from mathllm_grading.run import Run

from .office import opened_office

__all__ = ["FORMATS", "classroom", "grade_one", "gradescope", "learner_of"]


def grade_one(assignment, folder, learner):
    """Grade the notebooks in a folder as a learner's submission to this course: [(title, points, possible, text)].

    Written answers are left out: a person grades them. The grades are recorded, as those of any submission.

    Raises: ValueError if there is nothing to grade, or grading failed.
    """
    if not re.fullmatch(r"\w[\w.+-]*", learner):
        raise ValueError(f"{learner!r} cannot be the id of a learner: letters, digits and . + - _")
    with opened_office() as office:
        assignment = assignment_called(office.book, assignment).name
        place = Path(office.directory.format_path(office.directory.submitted_directory, learner, assignment))
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place, symlinks=True)
    with Run(assignment, [learner], force=True) as run:
        (result,) = run.results()
    if result.error:
        raise ValueError(result.error)
    found = []
    for grades in result.graded.grades.values():
        for name, grade in grades.items():
            entry = item(name.replace("-", "."))
            if entry.kind != "text":
                text = "\n".join(filter(None, [grade.text, grade.review]))
                found.append((entry.title, grade.points or 0.0, entry.points, text))
    return found


def gradescope(found):
    """The content of Gradescope's results.json.

    >>> gradescope([("A length", 1.0, 2.0, "an entry is wrong")])["tests"]
    [{'name': 'A length', 'score': 1.0, 'max_score': 2.0, 'output': 'an entry is wrong', 'output_format': 'text'}]
    """
    keys = ("name", "score", "max_score", "output")
    tests = [dict(zip(keys, entry, strict=True)) | {"output_format": "text"} for entry in found]
    return {"score": sum(points for _, points, _, _ in found), "stdout_visibility": "hidden", "tests": tests}


def classroom(found):
    """What the reporter of GitHub Classroom reads.

    >>> classroom([("A length", 2.0, 2.0, "")])["status"], classroom([("A length", 1.0, 2.0, "")])["status"]
    ('pass', 'fail')
    """
    tests = [
        {"name": f"{title}: {points:g} of {possible:g}", "status": _status(points, possible), "score": points,
         "message": text, "test_code": "", "filename": "", "line_no": 0, "duration": 0}
        for title, points, possible, text in found
    ]  # fmt: skip
    whole = _status(*(sum(entry[n] for entry in found) for n in (1, 2)))
    return {"version": 1, "status": whole, "max_score": sum(possible for _, _, possible, _ in found), "tests": tests}


def _status(points, possible):
    return "pass" if points == possible else "fail"


def learner_of(metadata):
    """A learner's id from Gradescope's submission_metadata.json: the email address before the @.

    >>> learner_of('{"users": [{"email": "ada@example.org", "id": 1, "name": "Ada"}]}')
    'ada'
    """
    return json.loads(metadata)["users"][0]["email"].partition("@")[0]


def _as_json(found):
    return json.dumps(gradescope(found), ensure_ascii=False, indent=1) + "\n"


def _as_base64(found):
    return "result=" + base64.b64encode(json.dumps(classroom(found)).encode()).decode() + "\n"


FORMATS = {"gradescope": _as_json, "classroom": _as_base64}
