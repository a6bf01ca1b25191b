"""`python -m mathllm_grading grade`: a class graded in parallel, as nbgrader would, whatever happens meanwhile.

The course has one notebook with one exercise for the grader and one for a person. It is generated once and copied.
"""

import contextlib
import dataclasses
import fcntl
import os
import pickle
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import grading
import pytest
from click.testing import CliRunner
from grading import answered, end, nbgrader, start
from mathllm_exercises import item
from mathllm_grading import gradebook, sandbox, workers
from mathllm_grading.__main__ import main
from mathllm_grading.run import Run, grade
from mathllm_grading.workers import Result, Task
from nbgrader.api import Gradebook
from sqlalchemy import create_engine, event
from sqlalchemy.orm import Session

pytestmark = pytest.mark.slow

NAME, NORM, TEXT = "01_vectors", "01-vectors-norm", "01-vectors-line_or_plane"
FULL = item("01.vectors.norm").points
SQUARED = "def norm(x):\n    return np.sum(x * x, axis=-1)"
LATER = "2026-11-21 10:00:00 UTC"
FOREIGN = b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "import os; os._exit(0)"}]}'
SLOW = "import time\nopen('@STARTED@', 'w').close()\ntime.sleep(300)"
# A kernel without a sandbox starts sooner, and is found in the list of processes.
HERE = {"MATHLLM_UNSANDBOXED": "yes"}
POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def program(folder, *arguments, main=main, code=0, **environment):
    """Run our command in a process of its own; its output."""
    ended, said = end(*start(main, arguments, folder, **HERE | environment))
    assert ended == code, said
    return said


def hand_in(root, learner, answer=None, **settings):
    """A submission: the model solution, or `answer` in its place, or (bytes) a file that is no notebook."""
    path = root / "source" / NAME / f"{NAME}.ipynb"
    given = {f"{NORM}-answer": answer} if answer else {}
    return grading.hand_in(root, learner, answer if isinstance(answer, bytes) else answered(path, given), **settings)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    return grading.generated(tmp_path_factory.mktemp("generated"), NAME, {"01-2", NORM, TEXT})


@pytest.fixture
def course(generated, tmp_path):
    """A course in which nobody has handed in anything yet."""
    return shutil.copytree(generated, tmp_path / "course")


def scores(root):
    """{learner: [auto score, needs a person]} of the exercise that the grader judges."""
    return {learner: [*row[NORM]] for learner, row in grading.grades(root).items()}


def contents(root):
    """Everything that grading leaves in the gradebook and in autograded/, without random ids and keys."""
    with contextlib.closing(sqlite3.connect(root / "gradebook.db")) as database:
        tables = [
            sorted(map(str, database.execute(query)))
            for query in (
                "SELECT student_id, timestamp FROM submitted_assignment",
                "SELECT auto_score, manual_score, extra_credit, needs_manual_grade FROM grade",
                "SELECT auto_comment, manual_comment FROM comment",
                "SELECT id FROM student",
            )
        ]
    files = {str(path.relative_to(root)): path for path in (root / "autograded").rglob("*") if path.is_file()}
    return tables, {name: (path.read_text(), path.stat().st_mode) for name, path in files.items()}


def ours(*arguments, code=0):
    """Run our command in this process, in the folder we are in; what it prints."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def inside(course, monkeypatch):
    """The course, and we are in its folder."""
    monkeypatch.chdir(course)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("MATHLLM_UNSANDBOXED", "yes")
    return course


# What nbgrader would do


def test_a_class_is_graded_as_nbgrader_grades_it(course):
    answers = {
        "right": None,
        "squared": SQUARED,
        "broken": b'{"cells": [',
        "dies": "import os\nos._exit(0)",
        "foreign": FOREIGN,
    }
    for learner, answer in answers.items():
        hand_in(course, learner, answer)
    (course / "submitted" / "dies" / NAME / "notes.txt").write_text("my notes")
    stock = shutil.copytree(course, course.parent / "stock")
    sandboxed = {"MATHLLM_UNSANDBOXED": "" if sandbox.problem() is None else "yes"}
    shown = program(course, "grade", NAME, "--jobs", "2", **sandboxed)
    nbgrader(f"autograde {NAME}", stock, **sandboxed)

    assert contents(course) == contents(stock)
    assert scores(course) == {
        "right": [FULL, 0],
        "squared": [0, 0],
        "broken": [0, 1],
        "dies": [0, 1],
        "foreign": [0, 1],
    }
    assert "broken      0.00" in shown
    assert "for review: the notebook cannot be read" in shown
    assert "for review: the notebook holds nothing of this assignment" in shown
    assert "5 graded, 0 graded before, 0 failed" in shown
    for folder in (course, stock):
        (backup,) = gradebook.backups(folder)
        assert backup.stat().st_mode & 0o777 == 0o600


def test_only_what_is_new_or_handed_in_again_is_graded(inside):
    with Gradebook(f"sqlite:///{inside}/gradebook.db") as book:
        book.update_or_create_assignment(NAME, duedate="2026-11-20 12:00 UTC")
    with (inside / "nbgrader_config.py").open("a") as settings:
        settings.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')
    hand_in(inside, "early")
    hand_in(inside, "again", SQUARED)
    ours("grade", NAME)
    (inside / "submitted" / "early" / NAME / f"{NAME}.ipynb").write_text("never looked at again")
    hand_in(inside, "again", None, time=LATER)
    hand_in(inside, "late")
    shown = ours("grade", NAME)
    assert "2 graded, 1 graded before, 0 failed" in shown
    assert re.findall("(.*?) +([0-9.]+) .*; late by 22:00:00, ([0-9]+) points lost", shown) == [
        ("again", "0.00", f"{FULL:g}")
    ]
    assert scores(inside) == {"early": [FULL, 0], "again": [FULL, 0], "late": [FULL, 0]}
    assert "0 graded, 3 graded before, 0 failed" in ours("grade", NAME)
    assert "1 graded, 0 graded before, 0 failed" in ours("grade", NAME, "--student", "late", "--force")
    assert len(gradebook.backups(inside)) == 3  # none where there was nothing to do


# What can go wrong


def test_a_process_that_is_killed_costs_nobody_else_a_grade():
    tasks = [Task(name, NAME, "") for name in ("a", "killed", "b", "leaves", "c", "d")]
    results = {result.learner: result for result in workers.on_this_machine(tasks, kill_some, 2)}
    assert results.keys() == {task.learner for task in tasks}
    assert "was killed by SIGKILL" in results["killed"].error
    assert "ended with exit code 7" in results["leaves"].error
    assert all(results[name].error is None for name in "abcd")


def test_learners_who_take_too_long_are_given_up_and_the_run_goes_on():
    tasks = [Task(name, NAME, "") for name in ("sleeps", "sleeps too")]
    results = list(workers.on_this_machine(tasks, kill_some, 1, limit=0))
    assert [result.learner for result in results] == ["sleeps", "sleeps too"]
    assert all("was killed by SIGKILL" in result.error for result in results)


def kill_some(task):
    {
        "killed": lambda: os.kill(os.getpid(), signal.SIGKILL), "leaves": lambda: os._exit(7),
        "sleeps": signal.pause, "sleeps too": signal.pause,
    }.get(task.learner, lambda: None)()  # fmt: skip
    return Result(task.learner)


STEPS = {
    "open", "os.chmod", "os.fork", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink",
    "shutil.move", "shutil.rmtree", "shutil.copytree", "sqlite3.connect", "subprocess.Popen",
}  # fmt: skip


def killed_at(last):
    """Our command in a process that is killed at this step: when it touches a file, a folder, a database or a program
    for the nth time, or (half) in the middle of a grade that it records."""

    def run(arguments):
        count, here, write = 0, os.getpid(), gradebook._write

        def written(row, grade, unchanged):
            write(row, grade, unchanged)
            row.notebook.comments[0].auto_comment = "half"
            sys.audit("half")

        def step(event, _):
            nonlocal count
            if os.getpid() == here:  # the process that grades has steps of its own
                count += event in STEPS
                if event == last or (event in STEPS and count == last):
                    os.kill(here, signal.SIGKILL)

        gradebook._write = written
        sys.addaudithook(step)
        try:
            main(arguments)
        finally:
            print("steps:", count)

    return run


@pytest.fixture(scope="module")
def half_graded(generated, tmp_path_factory):
    """A course with one grade, work handed in again and new work; how many steps a run has; what it leaves."""
    course = shutil.copytree(generated, tmp_path_factory.mktemp("half") / "course")
    hand_in(course, "again", SQUARED)
    program(course, "grade", NAME, "--jobs", "1")
    hand_in(course, "again", time=LATER)
    hand_in(course, "broken", b'{"cells": [')
    hand_in(course, "squared", SQUARED)
    whole = shutil.copytree(course, course.parent / "whole")
    shown = program(whole, "grade", NAME, "--jobs", "1", main=killed_at("never"))
    return course, int(re.search(r"steps: (\d+)", shown)[1]), contents(whole)


@pytest.mark.parametrize(
    "part", ["half", *(pytest.param(n, marks=[] if n in (9, 16) else pytest.mark.nightly) for n in range(20))]
)
def test_a_run_that_is_killed_at_any_step_is_finished_by_the_next_and_nothing_is_lost_or_doubled(
    half_graded, tmp_path, part
):
    before, steps, whole = half_graded
    course = shutil.copytree(before, tmp_path / "course")
    step = part if part == "half" else 1 + part * steps // 20
    program(course, "grade", NAME, "--jobs", "1", main=killed_at(step), code=-signal.SIGKILL)
    with open(course / ".grading.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the process that graded for this run ends, too, and holds it no longer
    assert scores(course)["again"][0] in ((0,) if part == "half" else (0, FULL))
    assert part != "half" or LATER not in (course / "autograded" / "again" / NAME / "timestamp.txt").read_text()
    program(course, "grade", NAME, "--jobs", "1")
    assert contents(course) == whole


@pytest.mark.skipif(bool(sandbox.problem()), reason="bubblewrap makes the small disk")
@pytest.mark.parametrize("spare", [160, *(pytest.param(n, marks=pytest.mark.nightly) for n in (0, 168, 184, 200, 220))])
def test_a_full_disk_is_said_to_be_full_and_no_grade_is_lost(half_graded, tmp_path, spare):
    before, _, whole = half_graded
    disk, full, mended = (tmp_path / name for name in ("disk", "full", "mended"))
    grade = f"{sys.executable} -m mathllm_grading grade {NAME} --jobs 1"
    script = f"""
        cp -a {before}/. {disk} && cd {disk}
        head -c 8M /dev/zero > filler; truncate -s -{spare}K filler
        {grade}; echo "exit code $?"
        rm filler; cp -a . {full}
        {grade}; cp -a . {mended}
    """
    small = ["bwrap", "--dev-bind", "/", "/", "--size", "8000000", "--tmpfs", str(disk), "sh", "-c", script]
    shown = subprocess.run(
        small, env=os.environ | HERE, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ).stdout
    assert re.search("disk is full|No space left", shown), shown
    assert "exit code 1" in shown
    assert all(grades in (scores(before).get(name), scores(mended)[name]) for name, grades in scores(full).items())
    assert contents(mended) == whole


@pytest.mark.parametrize("moment", ["before", "while"])
def test_a_gradebook_that_stays_locked_is_said_to_be_and_keeps_its_grades(inside, monkeypatch, moment):
    monkeypatch.setattr(gradebook, "PATIENCE", 0.5)
    hand_in(inside, "a")
    hand_in(inside, "b", SQUARED)
    ours("grade", NAME, "--jobs", "1", "--student", "a")
    before = contents(inside)
    with contextlib.closing(sqlite3.connect(inside / "gradebook.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE" if moment == "before" else "BEGIN IMMEDIATE")  # which lets others read
        said = ours("grade", NAME, "--jobs", "1", code=1)
    assert "database is locked" in said
    assert contents(inside) == before
    ours("grade", NAME, "--jobs", "1")
    assert scores(inside)["a"][0] == FULL


def in_a_terminal(arguments):
    """Our command, which Ctrl-C interrupts with all processes that it has started, and nothing else."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(arguments)


def test_an_interrupt_leaves_whole_grades_and_no_process(course):
    hand_in(course, "a")
    hand_in(course, "b", SLOW.replace("@STARTED@", str(course / "started")))
    running, said = start(in_a_terminal, ["grade", NAME, "--jobs", "1"], course, **HERE)
    while not ((course / "started").exists() and (course / "autograded" / "a").exists()):
        assert running.is_alive()
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGINT)  # as Ctrl-C does
    code, shown = end(running, said)
    assert code == 130, shown
    assert "Traceback" not in shown
    assert "1 graded, 0 graded before, 0 failed, 1 not begun or not finished" in shown
    assert scores(course) == {"a": [FULL, 0]}
    assert [path.name for path in (course / "autograded").iterdir()] == ["a"]
    hand_in(course, "b")
    assert "1 graded, 1 graded before, 0 failed" in program(course, "grade", NAME)


def test_an_interrupt_amid_a_commit_ends_the_run_and_costs_no_grade(inside, monkeypatch):
    write, written = gradebook._write, []

    def interrupt(session):
        if written:
            written.clear()
            raise KeyboardInterrupt

    hand_in(inside, "a")
    monkeypatch.setattr(gradebook, "_write", lambda *grade: written.append(write(*grade)))
    event.listen(Session, "after_commit", interrupt)
    try:
        assert "interrupted" in ours("grade", NAME, "--jobs", "1", code=130)
    finally:
        event.remove(Session, "after_commit", interrupt)
    assert "1 graded, 0 graded before, 0 failed" in ours("grade", NAME)
    assert scores(inside) == {"a": [FULL, 0]}


def refused(*arguments, code=1):
    shown = ours(*arguments, code=code)
    assert not Path("backups").exists()
    return shown


def test_what_is_missing_is_named_and_a_wrong_name_answered_with_the_nearest(inside, monkeypatch):
    assert "did you mean 01_vectors?" in refused("grade", "01_vector")
    assert f"nbgrader collect {NAME}" in refused("grade", NAME)
    hand_in(inside, "adams")
    assert "did you mean adams?" in refused("grade", NAME, "--student", "adam")
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: Path(path).suffix != ".db")
        assert "gradebook.db cannot be written to" in refused("grade", NAME)
    (inside / "gradebook.db").unlink()
    assert f"nbgrader generate_assignment {NAME}" in refused("grade", NAME)
    assert not (inside / "gradebook.db").exists()
    monkeypatch.chdir(inside.parent)
    for command in (["grade", NAME], ["restore"]):
        assert "is not the folder of this course" in refused(*command)


def test_a_cluster_needs_a_gradebook_that_it_can_reach(inside):
    hand_in(inside, "adams")
    scheduler = ["--scheduler", "tcp://127.0.0.1:1"]
    assert "MATHLLM_GRADEBOOK" in refused("grade", NAME, *scheduler)
    assert "--jobs" in refused("grade", NAME, *scheduler, "--jobs", "2", code=2)


def test_two_runs_in_one_course_do_not_meet(inside):
    hand_in(inside, "adams")
    with Run(NAME) as run:
        assert len(run.tasks) == 1
        assert "another run is grading" in ours("grade", NAME, code=1)
        assert "another run is grading" in ours("restore", gradebook.backups(inside)[0].name, code=1)


def test_what_was_handed_in_does_not_stay_in_memory_when_it_is_recorded(inside):
    large = hand_in(inside, "ada") / "large.csv"
    large.write_bytes(bytes(10**6))
    with Run(NAME) as run:
        (result,) = run.results()
    assert result.graded.grades[NAME][NORM].points == FULL
    assert len(pickle.dumps(result)) < 10_000
    assert (inside / "autograded" / "ada" / NAME / large.name).stat().st_size == 10**6


def test_a_worker_whose_account_has_another_course_grades_in_the_folder_of_its_task(inside, tmp_path):
    hand_in(inside, "ada")
    other = tmp_path / "other"
    (other / "source" / NAME).mkdir(parents=True)
    (tmp_path / "nbgrader_config.py").write_text(f"get_config().CourseDirectory.root = {str(other)!r}")
    with Run(NAME) as run:
        (task,) = run.tasks
        sent, result = pickle.dumps(task), tmp_path / "result"
        program(
            "/", sent, main=lambda sent: result.write_bytes(pickle.dumps(grade(pickle.loads(*sent)))),
            JUPYTER_CONFIG_DIR=str(tmp_path),
        )  # fmt: skip
        run._recorded(pickle.loads(result.read_bytes()))
    assert scores(inside) == {"ada": [FULL, 0]}


def test_the_run_and_not_its_worker_says_whether_there_is_a_sandbox(inside, monkeypatch):
    hand_in(inside, "ada")
    with Run(NAME) as run:
        monkeypatch.delenv("MATHLLM_UNSANDBOXED")  # a worker's own environment says nothing, before and after
        assert grade(run.tasks[0]).graded.grades[NAME][NORM].points == FULL
    assert not run.assignment.sandboxed
    assert sandbox.required()


def test_a_run_that_finds_nobodys_notebook_takes_no_grade_away(inside):
    for learner in ("ada", "bob"):
        hand_in(inside, learner)
    ours("grade", NAME)
    for learner in ("ada", "bob"):
        (inside / "submitted" / learner / NAME / f"{NAME}.ipynb").rename(inside / f"{learner}.ipynb")
    shown = ours("grade", NAME, "--force", code=1)
    assert f"none of the 2 submissions holds {NAME}.ipynb" in shown
    assert scores(inside) == {"ada": [FULL, 0], "bob": [FULL, 0]}
    assert "1 graded" in ours("grade", NAME, "--force", "--student", "ada")
    assert scores(inside) == {"ada": [0, 1], "bob": [FULL, 0]}


def test_a_worker_that_does_not_see_what_was_handed_in_takes_no_grade_away(inside, tmp_path):
    hand_in(inside, "ada")
    ours("grade", NAME)
    with Run(NAME, force=True) as run:
        blind = grade(dataclasses.replace(run.tasks[0], folder=str(tmp_path / "nothing")))
        assert "does not see what was handed in" in run._recorded(blind).error
    assert scores(inside) == {"ada": [FULL, 0]}


def test_without_a_course_key_nobody_gets_a_zero(inside, monkeypatch):
    monkeypatch.delenv("MATHLLM_COURSE_KEY", raising=False)
    hand_in(inside, "ada")
    (inside / ".course_key").write_text("short")
    assert "too short" in ours("grade", NAME, code=1)
    assert scores(inside) == {}


def test_a_text_that_was_graded_by_hand_is_flagged_again_only_if_it_has_changed(inside):
    for learner in ("same", "other"):
        hand_in(inside, learner)
    ours("grade", NAME)
    with Gradebook(f"sqlite:///{inside}/gradebook.db") as book:
        for learner in ("same", "other"):
            grade = book.find_grade(TEXT, NAME, NAME, learner)
            assert grade.needs_manual_grade
            grade.manual_score, grade.needs_manual_grade = 1.0, False
        book.db.commit()
    grading.hand_in(inside, "other", answered(f"source/{NAME}/{NAME}.ipynb", {TEXT: "Another reason."}))
    ours("grade", NAME, "--force")
    with Gradebook(f"sqlite:///{inside}/gradebook.db") as book:
        grades = {learner: book.find_grade(TEXT, NAME, NAME, learner) for learner in ("same", "other")}
        assert [grades[name].manual_score for name in grades] == [1.0, 1.0]
        assert [grades[name].needs_manual_grade for name in grades] == [False, True]


def test_points_that_have_changed_since_the_assignment_was_generated_are_not_graded(inside):
    hand_in(inside, "ada")
    with contextlib.closing(sqlite3.connect(inside / "gradebook.db")) as database, database:
        query = "UPDATE grade_cells SET max_score = 2 WHERE id = (SELECT id FROM base_cell WHERE name = ?)"
        database.execute(query, (NORM,))
    shown = refused("grade", NAME)
    for words in (f"{NORM} ({FULL:g}, in the assignment 2)", "make notebooks", f"generate_assignment {NAME} --force"):
        assert words in shown
    assert scores(inside) == {}


# Backups


def test_the_last_twenty_backups_are_kept_and_one_can_be_restored(inside):
    address, book = f"sqlite:///{inside}/gradebook.db", inside / "gradebook.db"
    gradebook.back_up(address, inside)
    gradebook.back_up(address, inside, pause=timedelta(hours=1))
    (first,) = gradebook.backups(inside)
    for number in range(21):
        with contextlib.closing(sqlite3.connect(book)) as database, database:
            database.execute("INSERT INTO student VALUES (?, '', '', '', NULL)", (str(number),))
        gradebook.back_up(address, inside)
    kept = gradebook.backups(inside)
    assert len(kept) == 20
    assert first not in kept
    assert ours("restore").split() == [path.name for path in kept]
    assert "is as it was" in ours("restore", kept[0].name)
    assert students(book) == ["0", "1"]
    assert students(gradebook.backups(inside)[-1]) == sorted(map(str, range(21)))
    book.write_bytes(b"damaged")
    assert "is as it was" in ours("restore", kept[1].name)
    assert [path.read_bytes() for path in (inside / "backups").glob("damaged-*")] == [b"damaged"]
    assert students(book) == ["0", "1", "2"]


def students(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        return sorted(row[0] for row in database.execute("SELECT id FROM student"))


# A cluster

CLUSTER = """
from distributed import LocalCluster
with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
    print(cluster.scheduler_address, flush=True)
    input()
"""


@pytest.fixture
def postgres():
    """The address of a PostgreSQL database of our own; its server refuses to be run by root."""
    if not POSTGRES:
        pytest.skip("no PostgreSQL server is installed")
    folder = Path(tempfile.mkdtemp(prefix="mathllm-", dir="/tmp"))  # the name of a socket is short
    user = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
    if user:
        shutil.chown(folder, "nobody", "nogroup")
    data, log, options = folder / "data", folder / "log", f"-k {folder} -c listen_addresses='' -c fsync=off"

    def run(program, *arguments):
        command = [POSTGRES[-1].with_name(program), "-D", data, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, **user)

    try:
        run("initdb", "-U", "teacher", "-A", "trust", "-N", "-E", "UTF8")
        run("pg_ctl", "-o", options, "-l", log, "-w", "-t", "600", "start")
        yield f"postgresql+psycopg://teacher@/postgres?host={folder}"
    finally:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture
def scheduler(tmp_path):
    """The address of a Dask scheduler, with two workers."""
    patience = {f"DASK_DISTRIBUTED__COMM__TIMEOUTS__{what}": "600s" for what in ("CONNECT", "TCP")}
    environment = os.environ | patience | {"DASK_TEMPORARY_DIRECTORY": str(tmp_path / "dask")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", CLUSTER], **pipes, env=environment) as running:
        yield running.stdout.readline().strip()
        running.communicate("\n", timeout=600)


@pytest.mark.nightly
def test_a_cluster_grades_into_postgresql_what_one_machine_grades_into_sqlite(inside, postgres, scheduler, monkeypatch):
    for learner, answer in {"a": None, "b": SQUARED, "c": b"{", "d": None}.items():
        hand_in(inside, learner, answer)
    alone = ours("grade", NAME)
    shutil.rmtree(inside / "autograded")
    monkeypatch.setenv("MATHLLM_GRADEBOOK", postgres)
    nbgrader(f"generate_assignment {NAME} --force", inside)
    together = ours("grade", NAME, "--scheduler", scheduler)
    assert "4 graded, 0 graded before, 0 failed" in together
    assert points(together) == points(alone)
    assert "0 graded, 4 graded before, 0 failed" in ours("grade", NAME, "--scheduler", scheduler)
    if shutil.which("pg_dump"):
        assert gradebook.backups(inside)[-1].suffix == ".dump"
    monkeypatch.setattr(workers, "ANSWER", 1)
    assert "no Dask scheduler answers" in ours("grade", NAME, "--force", "--scheduler", "tcp://127.0.0.1:1", code=1)


@pytest.mark.nightly
def test_a_scheduler_without_a_worker_is_reported(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "ANSWER", 1)
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        task = Task("ada", NAME, "")
        with pytest.raises(OSError, match=f"{cluster.scheduler_address} has no worker: start one by dask worker"):
            next(workers.on_cluster([task], kill_some, cluster.scheduler_address))


@pytest.mark.nightly
def test_a_database_that_cannot_hold_every_character_is_refused_in_a_sentence(inside, postgres, monkeypatch):
    hand_in(inside, "ada")
    engine = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        settings = "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        connection.exec_driver_sql(f"CREATE DATABASE bytes {settings}")
    engine.dispose()
    monkeypatch.setenv("MATHLLM_GRADEBOOK", postgres.replace("/postgres?", "/bytes?"))
    shown = refused("grade", NAME)
    assert "the database bytes is encoded as SQL_ASCII" in shown
    assert "createdb -E UTF8" in shown


def points(table):
    return [line.split()[:3] for line in table.splitlines()[:-1]]
