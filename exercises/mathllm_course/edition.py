"""The learners' edition: the book, the package and the exercises, without solutions and without the grader.

It is a checkout of its own, in which `make lab` works. Exercises that count, and those whose checks are code, come as
`mathllm_exercises.recorded` makes them. The others keep their solutions, so check() knows all of their mistakes.
"""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from mathllm_exercises import bank, item, recorded
from mathllm_exercises.checks import rules
from mathllm_exercises.own_numbers import own_numbers

import mathllm

__all__ = ["make_edition"]

COPIED = (
    "LICENSE", "environment.yml", "exercises/mathllm_exercises", "exercises/practice", "mathllm", "notebooks",
    "requirements.lock", "tools/fetch_data.py", "tools/jupyter", "tools/set_up.sh",
)  # fmt: skip
TARGETS = ("help", "lab", "setup", "data", ".data/.ready")  # of the Makefile
SOLUTION = "<details>\n<summary><u>Solution</u></summary>"
CONFIGURATION = '''"""nbgrader in the learners' edition: the course, and where work is handed in."""

import os

c = get_config()
c.CourseDirectory.course_id = "{course}"
if os.environ.get("MATHLLM_EXCHANGE"):
    c.Exchange.root = os.environ["MATHLLM_EXCHANGE"]
'''


def make_edition(folder, learners, course, released=None):
    """Write the edition for the learners with these ids.

    released: the course's folder of assignments without solutions; those that are there are copied
    Raises: FileExistsError if the folder is there, FileNotFoundError without a checkout of the book.
    """
    folder, root = Path(folder), Path(mathllm.__file__).resolve().parents[1]
    if folder.exists():
        raise FileExistsError(f"{folder} is there already: name a new folder")
    if missing := [path for path in (*COPIED, "Makefile", "pyproject.toml") if not (root / path).exists()]:
        raise FileNotFoundError(f"the edition is made from a checkout of the book; {root} has no {missing[0]}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        new = Path(temporary, "edition")
        for path in COPIED:
            _copy(root / path, new / path)
        if released and Path(released).is_dir():
            _copy(Path(released), new / "assignments")
        _leave_out_solutions(new, learners)
        _settings(root, new, course)
        os.rename(new, folder)


def _copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    unwanted = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    shutil.copytree(source, target, ignore=unwanted) if source.is_dir() else shutil.copy(source, target)


def _leave_out_solutions(new, learners):
    """Exercises that count, and those whose checks are code, lose their solutions; the code of the checks goes."""
    package, records = new / "exercises" / "mathllm_exercises", []
    for record in bank.records():
        entry, rule = item(record["id"]), rules(record["id"])
        if record["graded"] or rule.write or rule.numbers or rule.expected:
            own = {learner: own_numbers(entry, learner) for learner in learners} if entry.numbers else {}
            record = recorded.record(record, entry, own)
        records.append(record)
    _write_json(package / "bank.json", records)
    for module in (package / "checks").glob("*.py"):
        if module.name != "__init__.py":
            module.unlink()
    without = {record["id"] for record in records if "solution" not in record}
    for notebook in [*new.glob("notebooks/*.ipynb"), *new.glob("exercises/practice/*.ipynb")]:
        content = json.loads(notebook.read_text(encoding="utf-8"))
        for cell in content["cells"]:
            card, folded, _ = "".join(cell["source"]).partition(SOLUTION)
            if folded and set(re.findall(r"· `([\w.]+)`$", card, re.MULTILINE)) & without:
                cell["source"] = card.rstrip().splitlines(keepends=True)
        _write_json(notebook, content)


def _write_json(path, content):
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _settings(root, new, course):
    """Files that say less than in the checkout: what set-up, JupyterLab and nbgrader need."""
    project = (root / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.hatch")[0]
    packages = '[tool.hatch.build.targets.wheel]\npackages = ["mathllm", "exercises/mathllm_exercises"]\n'
    (new / "pyproject.toml").write_text(project + packages, encoding="utf-8")
    blocks = (root / "Makefile").read_text(encoding="utf-8").strip().split("\n\n")
    names = [re.match(r"([\w./-]+):", block) for block in blocks]
    kept = [block for block, name in zip(blocks, names, strict=True) if name is None or name[1] in TARGETS]
    (new / "Makefile").write_text("\n\n".join([*kept, ".PHONY: help lab setup data\n"]), encoding="utf-8")
    (new / "exercises" / "nbgrader_config.py").write_text(CONFIGURATION.format(course=course), encoding="utf-8")
    shutil.copy(Path(__file__).with_name("learners_readme.md"), new / "README.md")
