"""Files of a learning platform, Moodle or Canvas: its list of learners, its gradebook, its download of uploads."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Learners", "Upload", "read_learners", "uploads", "write_grades"]

# What a platform calls what nbgrader knows of a learner; the first column that is there and filled in counts.
COLUMNS = {
    "id": ("Username", "SIS Login ID", "SIS User ID", "id"),
    "first_name": ("First name", "first_name"),
    "last_name": ("Last name", "Surname", "last_name"),
    "email": ("Email address", "email"),
    "lms_user_id": ("ID", "ID number", "lms_user_id"),
}
# What a platform needs to know its learners again when grades are imported.
IDENTITY = {
    "Canvas": ("Student", "ID", "SIS User ID", "SIS Login ID", "Section"),
    "Moodle": ("First name", "Last name", "Surname", "Username", "ID number", "Email address"),
    "nbgrader": ("id", "first_name", "last_name", "email", "lms_user_id"),
}
POINTS = "Points Possible"  # a row of Canvas, with four blanks in front


@dataclass
class Learners:
    """A platform's table: its name, its rows as they came, and {learner id: row}."""

    platform: str
    header: list
    rows: list
    by_id: dict


@dataclass
class Upload:
    """A file that was uploaded: by whom, as the platform says it, and where it is."""

    name: str
    number: str  # Moodle's, of the participant: a name is no proof, because Moodle lets participants change theirs
    lms_user_id: str
    path: Path


def read_learners(path, id_column=None):
    """The learners of a CSV file that Moodle or Canvas exported, or that has nbgrader's own columns.

    id_column: the column that holds the ids, by default the first of "Username", "SIS Login ID", "SIS User ID", "id",
    or else the part of the email address before the @.

    Raises: ValueError if there is no such column, or if an id is missing, occurs twice or cannot be a folder's name.
    """
    with open(path, encoding="utf-8-sig", newline="") as file:
        dialect = csv.excel_tab if "\t" in file.readline() else csv.excel
        file.seek(0)
        reader = csv.DictReader(file, dialect=dialect, restval="")
        rows, header = list(reader), [name.strip() for name in reader.fieldnames or []]
    rows = [{(name or "").strip(): value for name, value in row.items()} for row in rows]
    found = [name for name, needed in (("Canvas", "Student"), ("Moodle", "Email address"), ("nbgrader", "id"))
             if needed in header]  # fmt: skip
    if not found or (id_column and id_column not in header):
        wanted = repr(id_column) if found else "'Student' (Canvas), 'Email address' (Moodle) or 'id'"
        raise ValueError(f"{path} has no column {wanted}; its columns are {', '.join(header) or 'none'}")
    by_id = {}
    for number, row in enumerate(rows, start=2):
        if POINTS in row.get("Student", "") or row.get("Student", "").strip() in ("Student, Test", "Test Student"):
            continue
        learner = _id(row, id_column)
        if not re.fullmatch(r"[\w@.-]+", learner) or learner.startswith("."):
            raise ValueError(f"{path}, line {number}: {learner!r} cannot be a learner's id; name its column with --id")
        if learner in by_id:
            raise ValueError(f"{path}, line {number}: the id {learner!r} occurs twice; name another column with --id")
        by_id[learner] = row
    return Learners(found[0], header, rows, by_id)


def _id(row, column):
    if column:
        return row[column].strip()
    return _first(row, COLUMNS["id"]) or _first(row, COLUMNS["email"]).partition("@")[0]


def _first(row, names):
    return next((row[name].strip() for name in names if row.get(name, "").strip()), "")


def details(row):
    """What nbgrader's gradebook keeps of a learner."""
    found = {name: _first(row, names) for name, names in COLUMNS.items() if name != "id"}
    if row.get("Student") and not found["last_name"]:
        found["last_name"], _, found["first_name"] = (part.strip() for part in row["Student"].partition(","))
    return {name: value or None for name, value in found.items()}


def write_grades(learners, points, possible, path):
    """Write the platform's table with a column for each of `possible`, {column: points possible}.

    points: {learner id: {column: points}}; a learner without points gets an empty field, which an import leaves as it
    is. A column that the platform exported as "03_matrices (1234)" keeps this name, so that the import changes it.
    """
    names = {column: _known(learners.header, column) for column in possible}
    identity = [name for name in IDENTITY[learners.platform] if name in learners.header]
    ids = {id(row): learner for learner, row in learners.by_id.items()}
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*identity, *names.values()], extrasaction="ignore")
        writer.writeheader()
        if learners.platform == "Canvas":
            most = {names[column]: f"{points:g}" for column, points in possible.items()}
            writer.writerow({"Student": f"    {POINTS}"} | most)
        for row in learners.rows:
            if id(row) in ids:
                mine = points.get(ids[id(row)], {})
                writer.writerow({name: row.get(name, "") for name in identity}
                                | {names[column]: f"{value:g}" for column, value in mine.items()})  # fmt: skip


def _known(header, column):
    return next((name for name in header if re.fullmatch(re.escape(column) + r" \(\d+\)", name)), column)


def uploads(folder):
    """The notebooks in an unpacked download of all submissions, as Moodle and Canvas name them.

    Moodle: "Ada Lovelace_1234_assignsubmission_file/notebook.ipynb", or the same with _ for /
    Canvas: "lovelaceada_1234_5678_notebook.ipynb", with "_LATE" after the name if it came late

    Returns: a list of Upload, with the name (Moodle) or the id (Canvas); what a link points to is left out.
    """
    found, folder = [], Path(folder).resolve()
    for path in sorted(folder.rglob("*.ipynb")):
        if path.resolve() != path or not path.is_file():
            continue
        place = str(path.relative_to(folder))
        moodle = re.match(r"(?P<name>[^_/]+)_(?P<number>\d+)_assignsubmission_file[_/]", place)
        canvas = re.match(r"[^_/]+(_LATE)?_(?P<user>\d+)_\d+_[^/]+$", place)
        name, number = moodle.groups() if moodle else ("", "")
        found.append(Upload(name, number, canvas["user"] if canvas else "", path))
    return found
