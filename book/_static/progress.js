// What this browser remembers: where the reader was last, which questions and exercises are right, when a card comes again.
// Nothing leaves the browser; the page "Review" writes it into a file and reads it from one.
(() => {
  const KEY = "mathllm-book";
  const element = window.bookElement;
  const EMPTY = { version: 1, pages: {}, questions: {}, exercises: {}, cards: {} };

  function isWhole(memory) {
    const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
    if (!isObject(memory) || memory.version !== EMPTY.version) return false;
    return ["pages", "questions", "cards"].every((part) => isObject(memory[part])) && isObject(memory.exercises ?? {});
  }

  function load() {
    try {
      const memory = JSON.parse(localStorage.getItem(KEY));
      return { ...structuredClone(EMPTY), ...(isWhole(memory) ? memory : {}) };
    } catch {
      return structuredClone(EMPTY); // no storage, or not ours
    }
  }

  // Whether the browser has kept it: it may keep nothing, or no more. The pages work without.
  function save(memory) {
    try {
      localStorage.setItem(KEY, JSON.stringify(memory));
      return true;
    } catch {
      return false;
    }
  }

  function change(what) {
    const memory = load();
    what(memory);
    save(memory);
  }

  // The text of a file as memory; what is wrong is an error, and nothing has changed.
  function read(text) {
    let memory;
    try {
      memory = JSON.parse(text);
    } catch {
      memory = null;
    }
    if (!isWhole(memory)) throw new Error("This file does not hold what a browser remembers of this book. Nothing has changed.");
    if (!save(memory)) throw new Error("This browser could not keep what the file holds. Nothing has changed.");
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

  // The next exercise, of the chapters that the reader has opened, the last one first: one that was tried and is not right
  // yet, else the first that was not tried.
  function nextExercise(chapters, pages, exercises) {
    const opened = chapters.filter(({ name }) => pages[name]).sort((a, b) => pages[b.name].at - pages[a.name].at);
    const all = opened.flatMap(({ name, cards }) => cards.map((card) => ({ ...card, name })));
    return all.find(({ id }) => exercises[id] === false) ?? all.find(({ id }) => !exercises[id]);
  }

  // On the first page: where the reader was last, what each chapter has come to, and the next exercise.
  function goOn(list) {
    const { pages, questions, exercises } = load();
    const [name, last] = Object.entries(pages).sort(([, a], [, b]) => b.at - a.at)[0] ?? [];
    if (!last) return;
    const place = last.heading === last.title ? last.title : `${last.title}: ${last.heading}`;
    const link = element("a", { href: `notebooks/${name}.html#${last.section}` }, place);
    const line = element("p", { className: "book-go-on" }, "Go on reading ", link, ", or ", element("a", { href: "review.html" }, "review what you have read"), ".");
    const chapters = JSON.parse(document.querySelector("#book-exercises").textContent);
    const next = nextExercise(chapters, pages, exercises);
    if (next) line.append(" The next exercise: ", element("a", { href: `notebooks/${next.name}.html#${next.place}` }, next.title), ".");
    document.querySelector(".bd-article h1").after(line);
    list.querySelectorAll("a.book-chapter").forEach((anchor) => {
      const page = anchor.getAttribute("href").match(/(\d\d_\w+)\.html/)[1];
      const right = Object.values(questions[page] ?? {}).filter(Boolean).length;
      const { cards = [] } = chapters.find(({ name }) => name === page) ?? {};
      const solved = cards.filter(({ id }) => exercises[id]).length;
      const parts = [
        pages[page] && (pages[page].read ? "read" : "begun"),
        right && `${right} ${right > 1 ? "questions" : "question"} right`,
        solved && `${solved} of ${cards.length} exercises solved`,
      ];
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
