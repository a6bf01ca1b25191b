// What this browser remembers: where the reader was last, which questions were answered right, when a card comes again.
// Nothing leaves the browser; the page "Review" writes it into a file and reads it from one.
(() => {
  const KEY = "mathllm-book";
  const EMPTY = { version: 1, pages: {}, questions: {}, cards: {} };

  function isWhole(memory) {
    const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
    return isObject(memory) && memory.version === EMPTY.version && ["pages", "questions", "cards"].every((part) => isObject(memory[part]));
  }

  function load() {
    try {
      const memory = JSON.parse(localStorage.getItem(KEY));
      return isWhole(memory) ? memory : structuredClone(EMPTY);
    } catch {
      return structuredClone(EMPTY); // no storage, or not ours
    }
  }

  function save(memory) {
    try {
      localStorage.setItem(KEY, JSON.stringify(memory));
    } catch {
      // a browser that keeps nothing: the page works without
    }
  }

  function change(what) {
    const memory = load();
    what(memory);
    save(memory);
  }

  // The text of a file as memory; what is wrong with it is an error, and nothing has changed.
  function read(text) {
    let memory;
    try {
      memory = JSON.parse(text);
    } catch {
      memory = null;
    }
    if (!isWhole(memory)) throw new Error("This file does not hold what a browser remembers of this book. Nothing has changed.");
    save(memory);
  }

  window.bookMemory = { load, change, read, forget: () => save(structuredClone(EMPTY)) };

  const chapter = location.pathname.match(/\/notebooks\/(\d\d_\w+)\.html$/)?.[1];
  const words = (heading) => heading.textContent.replace(/[#¶]\s*$/, "").trim();

  // A section counts as reached when its heading has come into view.
  function follow() {
    const headings = [...document.querySelectorAll(".bd-article section > :is(h1, h2)")];
    const seen = new IntersectionObserver((entries) => {
      const last = entries.filter((entry) => entry.isIntersecting).at(-1)?.target;
      if (!last) return;
      change(({ pages }) => {
        const read = pages[chapter]?.read || words(last) === "Summary";
        pages[chapter] = { title: words(headings[0]), section: last.parentElement.id, heading: words(last), read, at: Date.now() };
      });
    });
    headings.forEach((heading) => seen.observe(heading));
  }

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  // On the first page: where the reader was last, and what each chapter has come to.
  function goOn(list) {
    const { pages, questions } = load();
    const [name, last] = Object.entries(pages).sort(([, a], [, b]) => b.at - a.at)[0] ?? [];
    if (!last) return;
    const link = element("a", { href: `notebooks/${name}.html#${last.section}` }, `${last.title}: ${last.heading}`);
    const line = element("p", { className: "book-go-on" }, "Go on reading ", link, ", or ", element("a", { href: "review.html" }, "review what you have read"), ".");
    document.querySelector(".bd-article h1").after(line);
    list.querySelectorAll("a.book-chapter").forEach((anchor) => {
      const page = anchor.getAttribute("href").match(/(\d\d_\w+)\.html/)[1];
      const right = Object.values(questions[page] ?? {}).filter(Boolean).length;
      const parts = [pages[page] && (pages[page].read ? "read" : "begun"), right && `${right} ${right > 1 ? "questions" : "question"} right`];
      const text = parts.filter(Boolean).join(", ");
      if (text) anchor.closest("li").querySelector("small").append(element("b", { className: "book-come-to" }, ` ✓ ${text}`));
    });
  }

  window.addEventListener("DOMContentLoaded", () => {
    const list = document.querySelector(".book-chapters");
    if (chapter) follow();
    if (list) goOn(list);
  });
  document.addEventListener("book-answered", ({ detail: { question, right } }) => {
    if (chapter) change(({ questions }) => { (questions[chapter] ??= {})[question] = right; });
  });
})();
