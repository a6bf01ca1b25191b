"""The drop box is open to all; what lies in it can neither pass for another's work nor stop the collecting."""

import os

import pytest
from mathllm_grading.collect import Collect, ReleaseFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import get_osusername

ME = get_osusername()
TIME = "2026-01-0{} 10:00:00 UTC+abc"


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('database')}/gradebook.db"


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
        course = CourseDirectory(
            root=str(tmp_path / "course"), course_id="mathllm", assignment_id="a1",
            db_url=database, max_dir_size=10,
        )  # fmt: skip
        Collect(coursedir=course, root=str(tmp_path / "exchange"), **settings).start()
        found = (tmp_path / "course").glob("submitted/*/a1")
        return {path.parent.name: {file.name: file.read_text() for file in path.iterdir()} for path in found}

    return run


@pytest.mark.slow
def test_a_submission_in_anothers_name_is_not_collected(collect):
    folders = {f"ada+a1+{TIME.format(2)}": {"nb.ipynb": "forged"}, f"{ME}+a1+{TIME.format(1)}": {"nb.ipynb": "mine"}}
    assert collect(folders) == {ME: {"nb.ipynb": "mine"}}


def test_the_owner_is_not_looked_at_where_accounts_mean_nothing(collect):
    folders = {f"ada+a1+{TIME.format(1)}": {"nb.ipynb": "hers"}, f"..+a1+{TIME.format(1)}": {"nb.ipynb": "outside"}}
    assert collect(folders, check_owner=False) == {"ada": {"nb.ipynb": "hers"}}


def test_links_and_pipes_are_left_where_they_are(collect, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "nb.ipynb").write_text("the solution")
    mine = f"{ME}+a1+{TIME.format(1)}"
    links = {
        f"{mine}/notes.txt": secret / "nb.ipynb", f"{mine}/folder": secret, f"{mine}/dangling": "nowhere",
        f"{mine}/pipe": None, f"{ME}+a1+{TIME.format(9)}": secret,
    }  # fmt: skip
    assert collect({mine: {"nb.ipynb": "mine"}}, links) == {ME: {"nb.ipynb": "mine"}}


def test_what_cannot_be_collected_stops_nobody(collect):
    folders = {
        "nonsense+a1+": {}, f"eve+a1+{TIME.format(1)}": {"nb.ipynb": "x" * 20_000},
        f"zoe+a1+{TIME.format(1)}": {"nb.ipynb": "fine"},
    }  # fmt: skip
    assert collect(folders, check_owner=False) == {"zoe": {"nb.ipynb": "fine"}}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # nbgrader leaves timestamp.txt open
def test_feedback_that_nobody_can_fetch_stops_nobody_elses(tmp_path):
    ways = {"ada": ["timestamp.txt", "submission_secret.txt"], "by hand": [], "no time": ["submission_secret.txt"]}
    for learner, files in ways.items():
        folder = tmp_path / "feedback" / learner / "a1"
        folder.mkdir(parents=True)
        for name in ["nb.html", *files]:
            (folder / name).write_text(learner)
    (tmp_path / "exchange").mkdir(mode=0o777)
    course = CourseDirectory(root=str(tmp_path), course_id="mathllm", assignment_id="a1")
    ReleaseFeedback(coursedir=course, root=str(tmp_path / "exchange")).start()
    released = (tmp_path / "exchange" / "mathllm" / "feedback").iterdir()
    assert [path.read_text() for path in released] == ["ada"]
