// Cards that explain a symbol, a term or an equation where it is used. They appear when the pointer rests on it or the
// keyboard reaches it, stay while the pointer is on the card, and go with Escape (WCAG 2.2, 1.4.13).
(() => {
  const THINGS = '.math[data-symbols], a.book-term, a.reference[href*="#equation-"]';
  const WAIT = 250; // milliseconds before a card comes or goes, so that the pointer can cross the page or reach the card
  const here = document.currentScript.src;
  const element = window.bookElement;
  let card, shown, timer, loading;

  // Loaded with the first card; by a script, since a page opened as a file can fetch nothing.
  function data() {
    loading ??= new Promise((resolve) => {
      const script = element("script", { src: new URL("cards_data.js", here) });
      script.addEventListener("load", () => resolve(bookCards));
      document.head.append(script);
    });
    return loading;
  }

  const formulas = (text) => text.replace(/\$([^$]+)\$/g, "\\($1\\)");

  function symbolRow([latex, means, shape, code]) {
    const more = [shape && `shape ${shape}`, code && `in code ${code}`].filter(Boolean).join(", ");
    const what = element("dd", {}, formulas(means), ...(more ? [element("small", {}, more)] : []));
    return [element("dt", {}, `\\(${latex}\\)`), what];
  }

  function termCard([term, means, also, chapter]) {
    const names = also.length ? ` (also ${also.join(", ")})` : "";
    const where = element("small", {}, `Chapter ${Number(chapter)}`);
    return [element("strong", {}, formulas(term)), names, element("p", {}, formulas(means)), where];
  }

  function contents(thing, cards) {
    if (thing.dataset.symbols) {
      return [element("dl", {}, ...thing.dataset.symbols.split(" ").flatMap((i) => symbolRow(cards.symbols[i])))];
    }
    const name = decodeURIComponent(thing.hash.slice(1));
    if (cards.terms[name]) return termCard(cards.terms[name]);
    return cards.equations[name] ? [`\\[${cards.equations[name]}\\]`] : null;
  }

  function place(thing) {
    const at = thing.getBoundingClientRect(), size = card.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - size.width - 8));
    const above = at.bottom + size.height + 4 > innerHeight && at.top > size.height;
    card.style.left = `${left + scrollX}px`;
    card.style.top = `${(above ? at.top - size.height : at.bottom) + scrollY}px`; // it touches what it explains
  }

  const described = (thing) => thing.querySelector("mjx-container") ?? thing;

  function hide() {
    clearTimeout(timer);
    if (card) {
      described(shown).removeAttribute("aria-describedby");
      card.remove();
    }
    card = shown = undefined; // also when the card of `shown` is still being made
  }

  async function show(thing) {
    if (shown === thing) return;
    hide();
    shown = thing;
    const inside = contents(thing, await data());
    if (shown !== thing || !inside) return;
    card = element("div", { id: "book-card" }, ...inside);
    card.setAttribute("role", "tooltip");
    document.body.append(card);
    described(thing).setAttribute("aria-describedby", card.id);
    place(thing);
    await window.MathJax?.typesetPromise?.([card]);
    if (shown === thing) place(thing);
  }

  const later = (task) => { clearTimeout(timer); timer = setTimeout(task, WAIT); };
  const thingOf = (event) => event.target.closest?.(THINGS);

  document.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "mouse") return;
    const thing = thingOf(event);
    if (thing) later(() => show(thing));
    else if (card?.contains(event.target)) clearTimeout(timer);
    else if (!shown?.contains(document.activeElement)) later(hide);
  });
  document.addEventListener("focusin", (event) => {
    const thing = thingOf(event);
    if (thing) show(thing);
    else hide();
  });
  document.addEventListener("focusout", () => later(hide));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
})();
