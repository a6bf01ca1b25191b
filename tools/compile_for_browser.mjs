// Compile Python files to bytecode with the Python that runs in the browser: folders site/ and stdlib/ inside FOLDER.
// Our own packages keep their text beside the bytecode, because the book shows it.
//
//     node tools/compile_for_browser.mjs PYODIDE FOLDER
import path from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, folder] = process.argv.slice(2).map((name) => path.resolve(name));
const { loadPyodide } = await import(pathToFileURL(path.join(pyodide, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: pyodide, env: { MPLBACKEND: "agg", PYTHONHASHSEED: "0" } });
const site = "/lib/python3.12/site-packages";
for (const [place, root] of [[site, "site"], ["/stdlib", "stdlib"]]) {
  python.FS.mkdirTree(place);
  python.FS.mount(python.FS.filesystems.NODEFS, { root: path.join(folder, root) }, place);
}
await python.runPythonAsync(`
import importlib._bootstrap_external
from pathlib import Path

def compile_all(folder, shown):
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder)
        code = compile(path.read_bytes(), f"{shown}/{inside}", "exec", dont_inherit=True)
        bytecode = importlib._bootstrap_external._code_to_hash_pyc(code, bytes(8), False)  # used whatever the text is
        if inside.parts[0].startswith("mathllm"):
            target = path.parent / "__pycache__" / f"{path.stem}.cpython-312.pyc"
            target.parent.mkdir(exist_ok=True)
        else:
            target = path.with_suffix(".pyc")
            path.unlink()
        target.write_bytes(bytecode)

compile_all(Path("/stdlib"), "/lib/python312.zip")
compile_all(Path("${site}"), "${site}")
`);
await python.runPythonAsync(`
import json
import matplotlib.font_manager  # writes the list of its fonts, for which it needs a second or two

fonts = Path(matplotlib.__file__).with_name("fontlist.json")
lists = json.loads(fonts.read_text())
lists["ttflist"].sort(key=lambda font: font["fname"])
fonts.write_text(json.dumps(lists))
`);
