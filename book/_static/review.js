// The page of cards asks what is due. FSRS, a scheduler (ts-fsrs), says when a card comes again.
(() => {
  const AT_ONCE = 10; // new cards of one day
  const here = document.currentScript.src;
  const RATINGS = ["Again", "Hard", "Good", "Easy"];
  const DAY = 86_400_000; // milliseconds
  const element = window.bookElement;

  function button(text, act) {
    const made = element("button", { type: "button" }, text);
    made.addEventListener("click", act);
    return made;
  }

  const today = () => new Date().toDateString();
  const chapterOf = (card) => card.closest("section").querySelector("h2 a").getAttribute("href").match(/(\d\d_\w+)/)[1];

  // First what is due, the oldest first; then new cards of opened chapters, in the order of the book.
  function queue(all) {
    const { cards, pages } = bookMemory.load();
    const due = all.filter((card) => cards[card.id] && new Date(cards[card.id].due) <= new Date());
    due.sort((a, b) => new Date(cards[a.id].due) - new Date(cards[b.id].due));
    const begun = Object.values(cards).filter((card) => card.begun === today()).length;
    const fresh = all.filter((card) => !cards[card.id] && pages[chapterOf(card)]);
    return [...due, ...fresh.slice(0, Math.max(0, AT_ONCE - begun))];
  }

  function wait(until) {
    const days = (new Date(until) - new Date()) / DAY;
    const [size, unit] = days < 1 / 24 ? [days * 1440, "minute"] : days < 1 ? [days * 24, "hour"] : [days, "day"];
    const count = Math.max(1, Math.round(size));
    return `${count} ${unit}${count > 1 ? "s" : ""}`;
  }

  // Formulas are set one part after another: MathJax does one thing at a time.
  let setting;
  function set(part) {
    setting = setting.then(() => window.MathJax?.typesetPromise?.([part]));
    return setting;
  }

  async function ask(box, all, scheduler) {
    const waiting = queue(all);
    if (waiting.length === 0) {
      box.replaceChildren(element("p", {}, finished(all)));
      return;
    }
    const [card] = waiting;
    if (!card.querySelector("mjx-container")) await set(card); // it is copied with its formulas
    const front = card.querySelector(".book-front").cloneNode(true);
    const about = element("p", { className: "book-left" }, `${waiting.length} ${waiting.length > 1 ? "cards are" : "card is"} waiting. This one is from chapter `);
    about.append(card.closest("section").querySelector("h2 a").cloneNode(true), ".");
    const show = button("Show the answer", () => {
      show.replaceWith(card.querySelector(".book-back").cloneNode(true), rate(card, box, all, scheduler));
      box.querySelector(".book-rate button").focus();
    });
    box.replaceChildren(about, front, show);
  }

  function rate(card, box, all, scheduler) {
    const { begun, ...known } = bookMemory.load().cards[card.id] ?? FSRS.createEmptyCard();
    const choices = scheduler.repeat(known, new Date());
    const buttons = RATINGS.map((name) => {
      const next = choices[FSRS.Rating[name]].card;
      return button(`${name}: ${wait(next.due)}`, async () => {
        bookMemory.change(({ cards }) => { cards[card.id] = { ...next, begun: begun ?? today() }; });
        await ask(box, all, scheduler);
        box.querySelector("button")?.focus();
      });
    });
    return element("div", { className: "book-rate", role: "group", ariaLabel: "How well did you know it?" }, ...buttons);
  }

  function finished(all) {
    const { cards, pages } = bookMemory.load();
    if (Object.keys(pages).length === 0) return "No card is waiting, because no chapter has been opened in this browser. Read one first.";
    const coming = all.map((card) => cards[card.id]?.due).filter(Boolean).sort()[0];
    return `No card is waiting.${coming ? ` The next one comes in ${wait(coming)}.` : ""} A chapter that you open brings new ones.`;
  }

  function memory(box, again) {
    const said = element("output", {});
    const say = (text) => { said.textContent = text; again(); };
    const write = button("Write it into a file", () => {
      const file = new Blob([JSON.stringify(bookMemory.load())], { type: "application/json" });
      const link = element("a", { href: URL.createObjectURL(file), download: "mathllm-progress.json" });
      link.click();
      URL.revokeObjectURL(link.href);
    });
    const chosen = element("input", { type: "file", accept: "application/json,.json" });
    chosen.addEventListener("change", async () => {
      try {
        bookMemory.read(await chosen.files[0].text());
        say("What the file holds has taken the place of what was here.");
      } catch (error) {
        say(error.message);
      }
      chosen.value = "";
    });
    const forget = button("Forget everything", () => {
      if (!confirm("Forget where you read, your answers and your cards?")) return;
      bookMemory.forget();
      say("This browser remembers nothing of the book now.");
    });
    box.append(write, element("label", {}, "Read it from a file ", chosen), forget, said);
  }

  window.addEventListener("DOMContentLoaded", async () => {
    const all = [...document.querySelectorAll(".book-card")];
    await new Promise((resolve) => {
      const script = element("script", { src: new URL("vendor/ts-fsrs.js", here) });
      script.addEventListener("load", resolve);
      document.head.append(script);
    });
    setting = Promise.resolve(window.MathJax?.startup?.promise);
    const box = document.querySelector("#book-review");
    const again = () => ask(box, all, FSRS.fsrs());
    memory(document.querySelector("#book-memory"), again);
    await again();
    for (const section of document.querySelectorAll("section:has(> .book-card)")) { // the first card does not wait for all
      await set(section);
      await new Promise((done) => { setTimeout(done); }); // meanwhile the page answers
    }
  });
})();
