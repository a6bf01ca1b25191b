"""The drop box is open to all; what lies in it can neither pass for another's work nor stop the collecting."""

import os
from datetime import UTC, datetime

import pytest
from grading import new_gradebooks_at_once
from mathllm_course.exchange import Collect, ReleaseAssignment, ReleaseFeedback, exchange_problem
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError
from nbgrader.utils import get_osusername

pytestmark = pytest.mark.slow

ME = get_osusername()


def handed_in(learner, day=1):
    """The folder that `submit` makes in the drop box."""
    return f"{learner}+a1+2026-01-0{day} 10:00:00 UTC+abc"


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    new_gradebooks_at_once()
    return f"sqlite:///{tmp_path_factory.mktemp('database')}/gradebook.db"


def directory(root, **settings):
    return CourseDirectory(root=str(root), course_id="mathllm", assignment_id="a1", **settings)


@pytest.fixture
def collect(tmp_path, database):
    """Make folders in the drop box, collect them, and say who has what: {learner: {file: text}}."""
    inbound = tmp_path / "exchange" / "mathllm" / "inbound"
    inbound.mkdir(parents=True)
    (tmp_path / "course").mkdir()

    def run(folders, links=(), **settings):
        for name, files in folders.items():
            (inbound / name).mkdir()
            for file, text in files.items():
                (inbound / name / file).write_text(text)
        for name, target in dict(links).items():
            os.mkfifo(inbound / name) if target is None else (inbound / name).symlink_to(target)
        course = directory(tmp_path / "course", db_url=database, max_dir_size=10)
        Collect(coursedir=course, root=str(tmp_path / "exchange"), **settings).start()
        found = (tmp_path / "course").glob("submitted/*/a1")
        return {path.parent.name: {file.name: file.read_text() for file in path.iterdir()} for path in found}

    return run


def test_a_submission_in_anothers_name_is_not_collected(collect):
    folders = {handed_in("ada", day=2): {"nb.ipynb": "forged"}, handed_in(ME): {"nb.ipynb": "mine"}}
    assert collect(folders) == {ME: {"nb.ipynb": "mine"}}


def test_the_owner_is_not_looked_at_where_accounts_mean_nothing(collect):
    folders = {handed_in("ada"): {"nb.ipynb": "hers"}, handed_in(".."): {"nb.ipynb": "outside"}}
    assert collect(folders, check_owner=False) == {"ada": {"nb.ipynb": "hers"}}


def test_links_and_pipes_are_left_where_they_are(collect, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "nb.ipynb").write_text("the solution")
    mine = handed_in(ME)
    links = {
        f"{mine}/notes.txt": secret / "nb.ipynb", f"{mine}/folder": secret, f"{mine}/dangling": "nowhere",
        f"{mine}/pipe": None, handed_in(ME, day=9): secret,
    }  # fmt: skip
    assert collect({mine: {"nb.ipynb": "mine"}}, links) == {ME: {"nb.ipynb": "mine"}}


@pytest.mark.parametrize(
    "files",
    [{"nb.ipynb": "x" * 20_000}, {f"{n}.txt": "" for n in range(3)}],  # the room of this course is enough for two files
    ids=["too large", "too many empty files"],
)
def test_what_cannot_be_collected_stops_nobody(collect, files):
    folders = {"nonsense+a1+": {}, handed_in("eve"): files, handed_in("zoe"): {"nb.ipynb": "fine"}}
    assert collect(folders, check_owner=False) == {"zoe": {"nb.ipynb": "fine"}}


def test_files_that_are_younger_than_their_time_of_hand_in_are_reported(collect, caplog):
    """The time is written by the learner's own program; when a file has changed, the system knows."""
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    mine = handed_in("eve")
    said = {mine: {"timestamp.txt": "2026-01-01 10:00:00 UTC"}, handed_in("zoe"): {"timestamp.txt": now}}
    assert collect(said, check_owner=False).keys() == {"eve", "zoe"}
    (line,) = [record.getMessage() for record in caplog.records if "was changed at" in record.getMessage()]
    assert mine in line
    assert "says 2026-01-01 10:00 UTC" in line


def test_an_exchange_in_which_folders_can_be_renamed_is_not_used(collect, tmp_path):
    """One who may rename the course's folder puts up his own, and reads what others hand in."""
    mine = {handed_in(ME): {"nb.ipynb": "mine"}}
    exchange = tmp_path / "exchange"
    exchange.chmod(0o777)
    with pytest.raises(ExchangeError, match=f"chmod 1777 {exchange}"):
        collect(mine)
    course = directory(tmp_path / "course")
    with pytest.raises(ExchangeError, match="chmod 1777"):
        ReleaseAssignment(coursedir=course, root=str(exchange)).start()
    exchange.chmod(0o1777)
    assert collect({}) == {ME: {"nb.ipynb": "mine"}}


def test_the_exchange_that_releasing_makes_is_safe_and_a_strangers_course_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "course" / "release" / "a1").mkdir(parents=True)
    course = directory(tmp_path / "course")
    exchange = tmp_path / "exchange"
    ReleaseAssignment(coursedir=course, root=str(exchange)).start()
    assert exchange.stat().st_mode & 0o7777 == 0o1777
    assert not (tmp_path / "course" / "gradebook.db").exists()
    assert (exchange / "mathllm" / "outbound" / "a1").is_dir()
    assert exchange_problem(exchange, "mathllm") is None
    monkeypatch.setattr(os, "geteuid", lambda: 4711)  # the folder of the course is another's
    assert f"mathllm was put up by {ME}" in exchange_problem(exchange, "mathllm")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # nbgrader leaves timestamp.txt open
def test_feedback_that_nobody_can_fetch_stops_nobody_elses(tmp_path):
    secret = "submission_secret.txt"
    ways = {
        "ada": ["timestamp.txt", secret], "by hand": [], "no time": [secret], "no text": ["timestamp.txt"],
        "nothing": ["timestamp.txt"], "a folder": ["timestamp.txt"], "zoe": ["timestamp.txt", secret],
    }  # fmt: skip
    for learner, files in ways.items():
        folder = tmp_path / "feedback" / learner / "a1"
        folder.mkdir(parents=True)
        for name in ["nb.html", *files]:
            (folder / name).write_text(learner)
    (tmp_path / "feedback" / "no text" / "a1" / secret).write_bytes(b"\xff")
    (tmp_path / "feedback" / "nothing" / "a1" / secret).touch()
    (tmp_path / "feedback" / "a folder" / "a1" / secret).mkdir()
    (tmp_path / "exchange").mkdir(mode=0o777)
    ReleaseFeedback(coursedir=directory(tmp_path), root=str(tmp_path / "exchange")).start()
    released = (tmp_path / "exchange" / "mathllm" / "feedback").iterdir()
    assert sorted(path.read_text() for path in released) == ["ada", "zoe"]
