"""Build the notebooks from the texts: one way only, and the same bytes every time.

    book/NN_slug.md                   ->  notebooks/NN_slug.ipynb                   executed
    exercises/assignments/NN_slug.md  ->  exercises/source/NN_slug/NN_slug.ipynb    not executed, marked for nbgrader
                                      ->  exercises/practice/NN_slug.ipynb          the same to work on alone

A notebook is written only when all of it is there and sound; otherwise the old one stays. A chapter is executed again
when its cells changed, or a file of mathllm it used, or the lock; `.cache/notebooks/` remembers which those were.
"""

import hashlib
import json
import os
import re
import sys
import time
from pathlib import Path

import click
import nbformat
import scores
from chapter_cells import chapter_cells
from exercise_cells import assignment_cells, practice_cells
from kernel_managers import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat.v4 import new_code_cell, new_notebook
from notebook_text import FILE_NAME, SourceError, name_parts

from mathllm import data

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 600  # seconds for one cell
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "name": "python", "pygments_lexer": "ipython3"},
}
# What would make two runs differ is fixed: the order of sets, the rounding of threaded sums, where figures are drawn.
ENVIRONMENT = {
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONWARNINGS": "default",
}
DATA_NEEDED = re.compile(r"""data\.available\(['"]([\w-]+)['"]\)""")
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")
WIDGETS = "application/vnd.jupyter.widget-state+json"
LOADED_FILES = """
import json, sys
_files = {getattr(module, "__file__", None) for name, module in list(sys.modules.items())
          if name.split(".")[0] in ("mathllm", "mathllm_exercises")}
sys.stdout.write(json.dumps(sorted(filter(None, _files))))
"""


class BuildError(Exception):
    """A notebook could not be built, or is not what its text says."""


class Text:
    """A text and its notebook: where they are, and the cells the notebook must have."""

    def __init__(self, root: Path, source: Path, practice=False):
        self.root, self.source, self.name, self.practice = root, source, source.stem, practice
        self.number, self.slug = name_parts(source)
        self.executed = source.parent.name == "book"
        place = "notebooks" if self.executed else "exercises/practice" if practice else f"exercises/source/{self.name}"
        self.target = root / place / f"{self.name}.ipynb"
        self.assignment = root / "exercises" / "assignments" / source.name
        self.cache = root / ".cache" / "notebooks" / f"{self.name}.json"
        self.lines = {}  # cell id -> line in the text

    @property
    def title(self):
        return self.relative(self.source)

    def relative(self, path):
        return path.relative_to(self.root).as_posix()

    def cells(self):
        """The cells that the text stands for, without outputs. Raises: SourceError."""
        if self.executed:
            cells, self.lines = chapter_cells(self.source, self.assignment)
        else:
            cells = practice_cells(self.source) if self.practice else assignment_cells(self.source)
        ids = [cell.id for cell in cells]
        if twice := {id for id in ids if ids.count(id) > 1}:
            raise SourceError(self.source, 1, f"two cells get the id {min(twice)!r}: choose another label")
        return cells

    def where(self, cell):
        line = f":{self.lines[cell.id]}" if cell.id in self.lines else ""
        return f"{self.title}{line}: cell {cell.id}"


def texts(root: Path) -> list[Text]:
    """All texts with their notebooks: assignments first, for the chapters take their solutions from them."""

    def named(folder):
        return [path for path in sorted(folder.glob("*.md")) if FILE_NAME.fullmatch(path.stem)]

    assignments = named(root / "exercises" / "assignments")
    editions = [Text(root, path, practice) for path in assignments for practice in (False, True)]
    return editions + [Text(root, path) for path in named(root / "book")]


# Building


def build(text: Text, force=False) -> bool:
    """Build one notebook if it is out of date; whether it was built. Raises: SourceError, BuildError."""
    cells = text.cells()
    if not force and not drift(text, cells) and _unchanged(text):
        return False
    notebook = new_notebook(cells=cells, metadata=nbformat.from_dict(METADATA))
    files = _execute(text, notebook) if text.executed else []
    nbformat.validate(notebook)
    if text.executed:
        scores.keep(text.root, text.number, notebook)
    _write(text.target, nbformat.writes(notebook) + "\n")
    if text.executed:
        _write(text.cache, json.dumps(_fingerprints(text, files), indent=1) + "\n")
    return True


def _execute(text, notebook):
    """Run all cells in place, and return the files of mathllm that they used."""
    _need_data(text, notebook)
    text.target.parent.mkdir(parents=True, exist_ok=True)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        record_timing=False,
        coalesce_streams=True,
        store_widget_state=True,
        kernel_name="python3",
        kernel_manager_class=AsyncKernelManager,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(text.target.parent)}},
    )
    with client.setup_kernel(env=os.environ | ENVIRONMENT):
        for index, cell in enumerate(notebook.cells):
            try:
                client.execute_cell(cell, index)
            except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
                reason = f"{error.ename}: {error.evalue}" if isinstance(error, CellExecutionError) else str(error)
                raise BuildError(f"{text.where(cell)} failed: {reason.strip()}") from None
            if problem := _problem(text, cell):
                raise BuildError(f"{text.where(cell)} {problem}")
        client.set_widgets_metadata()
        notebook.cells.append(new_code_cell(LOADED_FILES))
        client.execute_cell(notebook.cells[-1], len(notebook.cells) - 1)
        files = json.loads(notebook.cells.pop().outputs[0].text)
    _name_widgets(text, notebook)
    return [Path(file).resolve() for file in files]


def _need_data(text, notebook):
    """A chapter built without its data would lack what it is about."""
    for cell in notebook.cells:
        for name in DATA_NEEDED.findall(cell.source) if cell.cell_type == "code" else ():
            if not data.available(name):
                raise BuildError(f"{text.where(cell)} needs the data package {name!r}; without it the notebook would "
                                 "be built without these outputs")  # fmt: skip


def _problem(text, cell):
    """What may not stand in a stored output; tracebacks are cut down to their last line."""
    for output in cell.get("outputs", ()):
        if output.output_type == "error":
            output.traceback = [f"{output.ename}: {output.evalue}"]
        if output.get("name") == "stderr":
            return f"wrote to stderr: {output.text.strip()}"
        content = output.get("data", {})
        for kind in content:
            if kind.startswith("image/") and not output.metadata.get(kind, {}).get("alt"):
                return f"shows a picture ({kind}) without alternative text; use plots.show(fig, alt=…)"
        if any("alt=" not in tag for tag in re.findall(r"<img\b[^>]*>", str(content.get("text/html", "")))):
            return "shows an <img> without alternative text"
        shown = [str(part) for kind, part in content.items() if kind.startswith("text/")]
        shown += [output.get("text", ""), output.get("evalue", "")]
        for part in shown:
            if match := ADDRESS.search(part):
                return f"shows an object address: {match[0]}"
            if str(text.root) in part:
                return f"shows a path of this machine: {text.root}"
    return None


def _name_widgets(text, notebook):
    """Give the widgets, whose ids are random, ids made from the chapter and their order."""
    ids = notebook.metadata.get("widgets", {}).get(WIDGETS, {}).get("state", {})
    content = json.dumps(notebook)
    for n, id in enumerate(ids):
        content = content.replace(id, hashlib.sha256(f"{text.name} {n}".encode()).hexdigest()[:32])
    notebook.update(nbformat.from_dict(json.loads(content)))


def _write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(content, encoding="utf-8", newline="\n")
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def _fingerprints(text, files):
    """What a chapter depends on, with its sha256: modules, files beside them (.js, .svg, .toml), lock, notebook."""
    kinds = (".css", ".js", ".mplstyle", ".svg", ".toml")
    beside = {path for file in files for path in file.parent.iterdir() if path.suffix in kinds}
    depends = {text.target, text.root / "requirements.lock", *files, *beside}
    names = {path: text.relative(path) if path.is_relative_to(text.root) else str(path) for path in depends}
    return {names[path]: _sha256(path) for path in sorted(depends) if path.exists()}


def _unchanged(text):
    """Whether the files a chapter used are still the same (or unknown: then the cells decide alone)."""
    if not text.cache.exists():
        return True
    try:
        known = json.loads(text.cache.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return all(_sha256(text.root / path) == value for path, value in known.items())


def _sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


# Checking


def drift(text: Text, cells) -> str | None:
    """How the stored notebook differs from the cells of its text, or None. Outputs are left to nbval."""
    if not text.target.exists():
        return f"{text.title} has no notebook {text.relative(text.target)}"
    where = text.relative(text.target)
    try:
        stored = nbformat.read(text.target, as_version=4)
    except (ValueError, nbformat.ValidationError) as error:
        return f"{where} is not a notebook: {str(error).splitlines()[0]}"
    for wanted, got in zip(cells, stored.cells, strict=False):
        for key in ("id", "cell_type", "source", "metadata"):
            if wanted[key] != got.get(key):
                return f"{where}: the {key} of cell {wanted.id} is not what {text.title} says"
        if problem := _problem(text, got):
            return f"{where}: cell {wanted.id} {problem}"
        if not text.executed and got.get("outputs"):
            return f"{where}: cell {wanted.id} has outputs, but an assignment is not executed"
    if len(cells) != len(stored.cells):
        return f"{where} has {len(stored.cells)} cells, {text.title} has {len(cells)}"
    if {key: value for key, value in stored.metadata.items() if key != "widgets"} != METADATA:
        return f"{where}: the metadata of the notebook is not what the builder writes"
    if text.executed and (problem := scores.drift(text.root, text.number, stored)):
        return f"{where}: {problem}"
    return None


def check(root: Path, chosen=None) -> list[str]:
    """What --check finds: texts and notebooks that do not belong together. Starts no kernel."""
    found = []
    for text in chosen if chosen is not None else texts(root):
        try:
            found += filter(None, [drift(text, text.cells())])
        except SourceError as error:
            found.append(str(error))
    if chosen is None:
        targets = {text.target for text in texts(root)}
        folders = ("notebooks", "exercises/source/*", "exercises/practice")
        stored = [path for folder in folders for path in root.glob(f"{folder}/*.ipynb")]
        found += [f"{path.relative_to(root)} has no text" for path in sorted(stored) if path not in targets]
    return list(dict.fromkeys(found))


def choose(root: Path, names) -> list[Text]:
    """The texts with these slugs, numbers or file names. Raises: BuildError for a name that none has."""
    everything = texts(root)
    for name in names:
        if not any(_called(text, name) for text in everything):
            known = ", ".join(dict.fromkeys(text.name for text in everything))
            raise BuildError(f"there is no text {name!r}; there are {known or 'none'}")
    return [text for text in everything if any(_called(text, name) for name in names)]


def _called(text, name):
    return name in (text.number, text.slug, text.name) or (name.isdigit() and int(name) == int(text.number))


@click.command(help="Build the notebooks whose text, or whose part of mathllm, has changed.")
@click.argument("names", nargs=-1, metavar="[SLUG or NUMBER]...")
@click.option("--check", "check_only", is_flag=True, help="Only say which notebooks are not what their texts say.")
@click.option("--force", is_flag=True, help="Build, changed or not.")
@click.option("--root", type=click.Path(exists=True, file_okay=False, path_type=Path), default=ROOT, hidden=True)
def main(names, check_only, force, root):
    root, errors = root.resolve(), []
    try:
        chosen = choose(root, names) if names else texts(root)
    except BuildError as error:
        raise click.ClickException(str(error)) from None
    if check_only:
        errors = check(root, chosen if names else None)
    else:
        for text in chosen:
            start = time.perf_counter()
            click.echo(f"{text.relative(text.target)} ... ", nl=False)
            try:
                built = build(text, force)
                click.echo(f"built in {time.perf_counter() - start:.1f} s" if built else "unchanged")
            except (SourceError, BuildError) as error:
                click.echo("failed")
                errors.append(str(error))
    for error in dict.fromkeys(errors):
        click.echo(error, err=True)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
