// A line at the foot of a notebook in the browser: whether Python is there yet, where changes are kept, and what to do
// where Stop does not reach Python.
(async () => {
  const SLOW = 90; // seconds after which something may be wrong
  const PATIENCE = 3; // seconds in which Stop should have ended a cell
  const LOADING = "Python is being loaded into this page: 50 megabytes the first time, then less. "
    + "Read on meanwhile; a cell that you run waits for it.";
  const STUCK = "Python is still not there. If the connection is slow, wait; if it was lost, load this page again.";
  const READY = "Python is ready: Shift + Enter runs a cell. What you change is kept in this browser, on this device.";
  const DEAF = "Stop cannot reach Python while this cell runs. Starting Python anew ends it: your text and its outputs "
    + "stay, the variables are lost.";
  const ANEW = "Python was started anew. Your text is as it was; run the cells above again, from the first.";

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
  const original = button("Bring back the original", async () => {
    if (!window.confirm("Give up your changes to this notebook, and bring back the book's?")) return;
    const { context } = notebook();
    await window.jupyterapp.serviceManager.contents.delete(context.path); // of the two, the reader's
    await context.revert();
    say(READY, download, original);
  });

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
    await pause(PATIENCE);
    if (status() === "busy") say(DEAF, button("Start Python anew", startAnew));
  }

  while (!["idle", "busy"].includes(status())) await pause(0.2);
  window.jupyterapp.commands.commandExecuted.connect(afterCommand);
  say(READY, download, original);
})();
