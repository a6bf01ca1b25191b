// A line at the foot of a notebook in the browser: whether Python is there yet, and where changes are kept.
(async () => {
  const SLOW = 90; // seconds after which something may be wrong
  const LOADING = "Python is being loaded into this page: 50 megabytes the first time, then less. "
    + "Read on meanwhile; a cell that you run waits for it.";
  const STUCK = "Python is still not there. If the connection is slow, wait; if it was lost, load this page again.";
  const READY = "Python is ready: Shift + Enter runs a cell. What you change is kept in this browser, on this device.";

  const line = document.body.appendChild(document.createElement("div"));
  line.id = "book-status";
  line.setAttribute("role", "status");
  line.textContent = LOADING;
  setTimeout(() => { if (line.textContent === LOADING) line.textContent = STUCK; }, 1000 * SLOW);

  function button(name, act) {
    return Object.assign(document.createElement("button"), { textContent: name, onclick: act });
  }

  const notebook = () => window.jupyterapp?.shell.currentWidget;
  document.addEventListener("visibilitychange", () => { // a telephone may end a page that is hidden
    if (document.hidden && notebook()?.context.model.dirty) notebook().context.save();
  });

  async function bringBack() {
    if (!window.confirm("Give up your changes to this notebook, and bring back the book's?")) return;
    const { context } = notebook();
    await window.jupyterapp.serviceManager.contents.delete(context.path); // of the two, the reader's
    await context.revert();
  }

  while (!["idle", "busy"].includes(notebook()?.sessionContext?.session?.kernel?.status)) {
    await new Promise((resolve) => { setTimeout(resolve, 200); });
  }
  const buttons = [button("Bring back the original", bringBack), button("Close", () => line.remove())];
  line.replaceChildren(READY, " ", ...buttons);
})();
