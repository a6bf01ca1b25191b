// A line at the foot of a notebook in the browser: whether Python is there yet, where changes are kept, whether the book
// has a newer version, and what to do where Stop does not reach Python.
(async () => {
  const SLOW = 90; // seconds after which something may be wrong
  const PATIENCE = 3; // seconds in which Stop should have ended a cell
  const LOADING = "Python is being loaded into this page: 25 megabytes the first time, then less. "
    + "Read on meanwhile; a cell that you run waits for it.";
  const STUCK = "Python is still not there. If the connection is slow, wait; if it was lost, load this page again.";
  const READY = "Python is ready: Shift + Enter runs a cell. What you change is kept in this browser, on this device.";
  const KEPT = " All notebooks open here without a network, too.";
  const NEWER = "The book has a newer version of this notebook. Yours is as you left it.";
  const DEAF = "Stop cannot reach Python while this cell runs. Starting Python anew ends it: your text and its outputs "
    + "stay, the variables are lost.";
  const ANEW = "Python was started anew. Your text is as it was; run the cells above again, from the first.";

  // The service worker isolates the page and keeps its files, from the second time that a page is loaded.
  if (navigator.serviceWorker && !window.crossOriginIsolated && !sessionStorage.getItem("book-isolated")) {
    sessionStorage.setItem("book-isolated", "tried"); // once, in case the browser does not isolate pages
    const address = "../service-worker.js?enableCache=false"; // the one that JupyterLite uses
    const registered = await navigator.serviceWorker.register(address).catch(() => null); // a browser may refuse
    if (registered) {
      await navigator.serviceWorker.ready;
      window.location.reload();
      return;
    }
  }

  // In an isolated page JupyterLite talks to Python in a way that loses a call when the answer is too quick. In any other
  // it talks in a way that does not, so it is told that this is another.
  if (window.crossOriginIsolated) Object.defineProperty(window, "crossOriginIsolated", { value: false });

  // For each link in a notebook, JupyterLite makes an address of a new copy of the whole notebook: seconds, in a long one.
  // One address serves until a file is changed.
  let app;
  Object.defineProperty(window, "jupyterapp", {
    get: () => app,
    set: (started) => {
      app = started;
      const { contents } = app.serviceManager;
      const makeAddress = contents.getDownloadUrl.bind(contents);
      const addresses = new Map();
      contents.getDownloadUrl = (path) => {
        if (!addresses.has(path)) addresses.set(path, makeAddress(path));
        return addresses.get(path);
      };
      contents.fileChanged.connect(() => addresses.clear());
    },
  });

  // What Python tells this page (mathllm_lite.py): when it starts, a byte that both share; then, which exercises are right.
  let signal = null;
  let kept = false; // whether all notebooks are there without a network
  window.Worker = class extends Worker {
    constructor(...description) {
      super(...description);
      this.addEventListener("message", ({ data }) => {
        if (data instanceof Uint8Array) signal = data;
        if (data?.exercise) window.bookMemory.change(({ exercises }) => { exercises[data.exercise] ||= data.right; });
      });
    }
  };

  const line = document.createElement("div");
  line.id = "book-status";
  line.setAttribute("role", "status");

  function say(text, ...buttons) {
    line.replaceChildren(text, " ", ...buttons, button("Close", () => line.remove()));
    document.body.append(line);
  }

  function button(name, act) {
    return Object.assign(document.createElement("button"), { textContent: name, onclick: act });
  }

  const pause = (seconds) => new Promise((resolve) => { setTimeout(resolve, 1000 * seconds); });
  const notebook = () => window.jupyterapp?.shell.currentWidget;
  const status = () => notebook()?.sessionContext?.session?.kernel?.status;

  line.textContent = LOADING;
  document.body.append(line);
  setTimeout(() => { if (line.textContent === LOADING) line.textContent = STUCK; }, 1000 * SLOW);

  document.addEventListener("visibilitychange", () => { // a telephone may end a page that is hidden
    if (document.hidden && notebook()?.context.model.dirty) notebook().context.save();
  });

  const download = button("Download", async () => {
    await notebook().context.save();
    await window.jupyterapp.commands.execute("docmanager:download");
  });
  const versionOf = (path) => `book-version ${path}`; // of the book's notebook, where the reader's began

  const original = (name) => button(name, async () => {
    if (!window.confirm("Give up your changes to this notebook, and bring back the book's?")) return;
    const { context } = notebook();
    await window.jupyterapp.serviceManager.contents.delete(context.path); // of the two, the reader's
    localStorage.removeItem(versionOf(context.path));
    context.model.dirty = false; // or the page would keep the changes when it is left
    window.location.reload(); // to put the original into a page that is still being drawn fails
  });

  async function greet() {
    const { path } = notebook().context;
    const answer = await fetch(`../files/${path}`, { cache: "no-cache" }).catch(() => null); // not the browser's own copy
    const ready = READY + (kept ? KEPT : "");
    if (!answer?.ok) { // the reader's own notebook, or no network
      say(ready, download);
      return;
    }
    const newer = await isNewer(path, await answer.json()).catch(() => false); // a browser that keeps nothing cannot tell
    if (newer) say(NEWER, download, original("Take the newer version"));
    else say(ready, download, original("Bring back the original"));
  }

  // Whether the book's notebook has changed since the reader began to change it.
  async function isNewer(path, book) {
    const { content } = await window.jupyterapp.serviceManager.contents.get(path, { content: true });
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(book)));
    const version = new Uint8Array(digest).join(" ");
    const began = localStorage.getItem(versionOf(path));
    if (began && JSON.stringify(content) !== JSON.stringify(book)) return began !== version;
    localStorage.setItem(versionOf(path), version);
    return false;
  }

  // --- Stop

  async function startAnew() {
    const { sessionContext } = notebook();
    say("Python is being started anew ...");
    await sessionContext.restartKernel();
    while (status() !== "idle") await pause(0.2);
    say(ANEW);
  }

  async function afterCommand(_, { id }) {
    if (id !== "notebook:interrupt-kernel" || status() !== "busy") return;
    if (signal) signal[0] = 2; // SIGINT, which Python reads while it computes
    await pause(PATIENCE);
    if (status() === "busy") say(DEAF, button("Start Python anew", startAnew));
  }

  // --- Every notebook opens without a network, too

  async function keepAll() {
    for (const folder of ["notebooks", "exercises/practice"]) {
      const { content } = await (await fetch(`../api/contents/${folder}/all.json`)).json();
      for (const { path } of content) await fetch(`../files/${path}`); // the service worker keeps it
    }
    for (const name of await (await fetch("../static/pyodide/data.json")).json()) {
      await (await fetch(`../static/pyodide/${name}`)).arrayBuffer();
    }
    kept = true;
    if (line.textContent.startsWith(READY) && line.isConnected) await greet();
  }

  while (!["idle", "busy"].includes(status())) await pause(0.2);
  window.jupyterapp.commands.commandExecuted.connect(afterCommand);
  await greet();
  if (navigator.serviceWorker?.controller) await keepAll();
})();
