"""A class graded by nbgrader as it comes, and by this course's grader: one learner after the other, and two at a time.

    python benchmarks/grading.py
    python benchmarks/grading.py --learners 24 --assignments 06_softmax --rounds 1

Every learner hands in the model solution. "nbgrader" is `nbgrader autograde` without this course's settings: nbgrader's
own Execute, no sandbox, scores computed in the learner's process. "with our settings" is the same command in this
course: each submission in a sandbox of its own (if bubblewrap is installed), answers judged outside. "1 job" and
"2 jobs" are `python -m mathllm_grading grade`, which does the same. A side is a program started anew in a fresh copy of
the course, and its start (imports, settings, backup) counts: seconds of a run, divided by the learners. The sides take
turns; the median counts.
"""

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXERCISES = ROOT / "exercises"
ENVIRONMENT = ROOT / ".venv" / "bin"  # where nbgrader is, whichever Python runs this
BIN = ENVIRONMENT if ENVIRONMENT.is_dir() else Path(sys.executable).parent
AS_IT_COMES = 'c = get_config()\nc.CourseDirectory.course_id = "mathllm"\n'
NBGRADER = [BIN / "nbgrader", "autograde", "--log-level=ERROR"]
OURS = [BIN / "python", "-m", "mathllm_grading", "grade", "--jobs"]
UNSANDBOXED = {} if shutil.which("bwrap") else {"MATHLLM_UNSANDBOXED": "yes"}  # model solutions do no harm
SIDES = {"nbgrader": NBGRADER, "with our settings": NBGRADER, "1 job": [*OURS, "1"], "2 jobs": [*OURS, "2"]}


def run(command, folder):
    """Run a command there; its seconds."""
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"} | UNSANDBOXED
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return time.perf_counter() - start


def make_course(folder, assignment, learners):
    """A course in which every learner has handed in the model solution and none is graded."""
    folder.mkdir()
    shutil.copy(EXERCISES / "nbgrader_config.py", folder)
    source = shutil.copytree(EXERCISES / "source" / assignment, folder / "source" / assignment)
    run([BIN / "nbgrader", "generate_assignment", assignment, "--log-level=ERROR"], folder)
    for number in range(learners):
        shutil.copytree(source, folder / "submitted" / f"learner{number:03}" / assignment)
    return folder


def grading_seconds(side, course, assignment):
    """The seconds in which a side grades a copy of the course."""
    with tempfile.TemporaryDirectory(dir=course.parent) as folder:
        copy = shutil.copytree(course, Path(folder, "course"))
        if side == "nbgrader":
            (copy / "nbgrader_config.py").write_text(AS_IT_COMES, encoding="utf-8")
        seconds = run([*SIDES[side], assignment], copy)
        submitted, graded = (len(list((copy / name).iterdir())) for name in ("submitted", "autograded"))
    if graded < submitted:
        sys.exit(f"{side}: {graded} of {submitted} learners graded")
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learners", type=int, default=12)
    parser.add_argument("--assignments", nargs="+", default=["01_vectors", "10_attention", "13_training"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    if UNSANDBOXED:
        print("bubblewrap is not installed: graded without the sandbox")
    for assignment in options.assignments:
        compare(assignment, options.learners, options.rounds)


def compare(assignment, learners, number):
    """Print the seconds of each side for one assignment."""
    with tempfile.TemporaryDirectory() as folder:
        course = make_course(Path(folder, "course"), assignment, learners)
        rounds = [[grading_seconds(side, course, assignment) / learners for side in SIDES] for _ in range(number)]
    medians = dict(zip(SIDES, map(statistics.median, zip(*rounds, strict=True)), strict=True))
    print(f"\n{learners} submissions of {assignment}; median of {number}")
    print(f"{'':<17}  seconds per submission  beside nbgrader")
    for side, seconds in medians.items():
        print(f"{side:<17}  {seconds:22.2f}  {seconds / medians['nbgrader']:14.2f}×")


if __name__ == "__main__":
    main()
