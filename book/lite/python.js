// Starts Python. JupyterLite's kernel loads this file in place of Pyodide's own script, and calls `loadPyodide`.
//
// What Python needs lies beside this file, compressed (*.packed, made by tools/build_lite.py), so that a visit is as short
// on hosts that do not compress. The packages are one file: a line of JSON with all paths and sizes, then all contents.
// They are bytecode, so Python compiles nothing when it starts.
self.loadPyodide = async ({ indexURL }) => {
  const PACKED = ["pyodide.asm.wasm", "python_stdlib.zip"];

  const unpacked = async (name) => {
    const { ok, body } = await fetch(`${indexURL}${name}.packed`);
    if (!ok) throw new Error(`${name} could not be loaded`);
    const headers = { "Content-Type": name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream" };
    return new Response(body.pipeThrough(new DecompressionStream("gzip")), { headers });
  };

  const write = (FS, bytes) => {
    const end = bytes.indexOf(10);
    const listed = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
    new Set(listed.map(([path]) => path.replace(/\/[^/]*$/, ""))).forEach((folder) => FS.mkdirTree(folder));
    let place = end + 1;
    for (const [path, size] of listed) {
      FS.writeFile(path, bytes.subarray(place, place + size), { canOwn: true });
      place += size;
    }
  };

  self.bookFolder = indexURL; // where mathllm_lite.py finds the data
  const packages = unpacked("packages").then((answer) => answer.arrayBuffer());
  const fetchPlain = self.fetch;
  self.fetch = (address, ...options) => {
    const name = PACKED.find((one) => String(address) === indexURL + one);
    return name ? unpacked(name) : fetchPlain(address, ...options);
  };
  importScripts(`${indexURL}pyodide.js`); // puts Pyodide's own `loadPyodide` in place of this one
  const fsInit = async (FS) => write(FS, new Uint8Array(await packages));
  const python = await self.loadPyodide({ indexURL, fsInit });
  self.fetch = fetchPlain;
  python.runPython("import mathllm_drive");
  return python;
};
