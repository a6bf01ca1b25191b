"""Render the book as web pages: book/ and the executed notebooks  ->  _site/.

What the pages load is fetched by npm once and copied next to them, so that an opened page asks no other server. A build
that fails leaves the old pages in place.

    python tools/build_site.py [--output FOLDER]
    python tools/build_site.py --lite       with the edition that runs in the browser, in lite/ beside the pages, and a
                                            button on each chapter that opens it there
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import build_lite
from build_lite import BuildError

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "book" / "web"  # package.json and its lock: exact versions, each file's checksum, no addresses
VENDOR = ROOT / ".cache" / "vendor"  # what npm has fetched; all but what is for tests, 7 MB, goes into every site
PARTS = {  # from the npm packages  ->  into _static/vendor
    "mathjax/es5/tex-chtml.js": "mathjax/tex-chtml.js",
    "mathjax/es5/output/chtml/fonts": "mathjax/output/chtml/fonts",
    "mathjax/es5/input/tex/extensions": "mathjax/input/tex/extensions",
    "mathjax/es5/a11y": "mathjax/a11y",
    "mathjax/es5/sre/mathmaps/base.json": "mathjax/sre/mathmaps/base.json",
    "mathjax/es5/sre/mathmaps/en.json": "mathjax/sre/mathmaps/en.json",
    "mathjax/LICENSE": "mathjax/LICENSE",
    "minisearch/dist/umd/index.js": "minisearch.js",
    "requirejs/require.js": "require.js",
    "ts-fsrs/dist/index.umd.js": "ts-fsrs.js",
    "axe-core/axe.min.js": "axe.js",  # this and the next two for tests only
    "oxlint": "lint/node_modules/oxlint",
    "@oxlint": "lint/node_modules/@oxlint",
    "@jupyter-widgets/html-manager/dist/embed-amd.js": "embed-amd.js",
}
NAMES = {"html": "site", "singlehtml": "PDF", "epub": "EPUB"}


def fetch():
    """Fill VENDOR with what the pages load, unless it is there already."""
    import anywidget

    bundle = Path(anywidget.__file__).parent / "nbextension" / "index.js"  # the version the notebooks were made with
    sources = [WEB / "package-lock.json", Path(__file__), bundle]
    stamp = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    if (VENDOR / "stamp").exists() and (VENDOR / "stamp").read_text() == stamp:
        return
    if shutil.which("npm") is None:
        raise BuildError("the site needs npm (Debian: apt install npm), to fetch what its pages load")
    VENDOR.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / ".cache") as folder:
        work, vendor = Path(folder) / "npm", Path(folder) / "vendor"
        shutil.copytree(WEB, work)
        command = ["npm", "ci", "--include", "dev", "--loglevel", "error"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True)
        if done.returncode:
            raise BuildError(f"npm could not fetch what the pages load:\n{done.stderr.strip()}")
        for name, target in PARTS.items():
            source, target = work / "node_modules" / name, vendor / target
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)
        shutil.copyfile(bundle, vendor / "anywidget.js")
        (vendor / "stamp").write_text(stamp)
        shutil.rmtree(VENDOR, ignore_errors=True)
        vendor.rename(VENDOR)


def build(output, lite=False):
    """Render into `output`, replacing what is there only when all went well."""
    fetch()
    with tempfile.TemporaryDirectory(dir=ROOT / ".cache") as folder:
        book, pages = Path(folder) / "book", Path(folder) / "pages"
        copy_book(book)
        shutil.copytree(VENDOR, book / "_static" / "vendor", ignore=shutil.ignore_patterns("axe.js", "lint", "stamp"))
        run_sphinx("html", book, pages, ["lite"] if lite else [])
        if lite:
            build_lite.build(pages / "lite")
        shutil.rmtree(output, ignore_errors=True)
        shutil.move(pages, output)


def copy_book(book):
    """A copy of the text, because Sphinx follows the link book/notebooks and then finds them outside its folder."""
    shutil.copytree(ROOT / "book", book, ignore=shutil.ignore_patterns("web", "lite", "__pycache__", ".*"))


def run_sphinx(builder, book, pages, tags=()):
    """Build `book` into `pages`. Raises: BuildError with Sphinx's warnings."""
    folder = book.parent
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", builder, "-d", folder / "doctrees"]
    command += [*(word for tag in tags for word in ("-t", tag)), book, pages]
    tools = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": tools}, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise BuildError(f"{_where(done.stderr, folder)}\nthe {NAMES[builder]} was not built: mend what is listed here")


def _where(warnings, folder):
    """Sphinx's warnings, with places that their reader knows."""
    warnings = warnings.strip().replace(f"{folder}{os.sep}", "")  # MyST-NB writes x.ipynb:30007 for a line of cell 3
    return re.sub(r"\.ipynb:(\d+)\d{4}\b", r".ipynb, cell \1", warnings)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "_site", help="where the pages go (default: _site)")
    parser.add_argument("--lite", action="store_true", help="with the edition that runs in the browser")
    options = parser.parse_args()
    output = options.output.resolve()
    try:
        build(output, options.lite)
    except BuildError as error:
        sys.exit(str(error))
    folder = os.path.relpath(output)
    print(f"The book is in {folder}; open {os.path.relpath(output / 'index.html')} in a browser.")
    if options.lite:  # what runs there is loaded by addresses, which a page opened as a file has not
        print(f"To run its chapters there: python -m http.server --directory {folder}, then http://localhost:8000")


if __name__ == "__main__":
    main()
