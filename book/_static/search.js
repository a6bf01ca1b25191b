// The search: sections of the book, found by MiniSearch among those that the builder wrote (search_data.js).
const bookSearch = (() => {
  const WORD = /√?[\p{L}\p{N}]+(?:[-–'’_][\p{L}\p{N}]+)*/gu;
  const SMALL = new Set(("a an and are as at be by do does for from how i in is it of on or that the this to we what when " +
    "why with you").split(" "));
  const BEFORE = 90, LENGTH = 240; // characters before the first word that was found, and of the whole excerpt

  const words = (text) => text.normalize("NFC").replace(/\bsqrt\s*\(?/gi, "√").match(WORD) ?? [];

  // One spelling: tokenization is tokenisation, heads are head.
  function normal(word) {
    const one = word.toLowerCase().replace(/[–_’']/g, "-").replace(/iz(?=[aei])/g, "is");
    return one.length > 3 ? one.replace(/(?<=[^s])s$/, "") : one;
  }

  // A word with hyphens is found as a whole and by its parts; so is FlashAttention.
  function forms(word) {
    const parts = word.replace(/(?<=[a-z])(?=[A-Z][a-z])/g, "-").split(/[-–_]/).map(normal);
    return [...new Set([normal(word), ...parts, parts.join("")])];
  }

  const known = new Map();
  function stored(word) {
    if (!known.has(word)) known.set(word, forms(word));
    return known.get(word);
  }

  function index(sections) {
    const search = new MiniSearch({
      fields: ["title", "page", "terms", "text"],
      tokenize: words,
      processTerm: stored,
      searchOptions: {
        processTerm: (word) => (SMALL.has(word.toLowerCase()) ? null : normal(word)),
        boost: { title: 4, page: 3, terms: 3, text: 1 },
        boostDocument: (id) => sections[id].weight,
        prefix: (word) => word.length > 2,
        weights: { prefix: 0.4, fuzzy: 0.2 },
      },
    });
    search.addAll(sections.map((section, id) => ({ id, ...section })));
    return search;
  }

  // What stands in a title or in bold exactly as it was typed, or is its abbreviation, comes first.
  function exact(section, query) {
    const asked = words(query).map(normal).join(" ");
    const same = (text) => words(text).map(normal).join(" ").replaceAll("-", " ") === asked.replaceAll("-", " ");
    const inTitle = ` ${words(section.title).map(normal).join(" ")} `.includes(` ${asked} `);
    return (section.terms.split(" | ").some(same) ? 4 : 1) * (inTitle ? 2 : 1);
  }

  function find(search, sections, query) {
    let hits = search.search(query, { combineWith: "AND" });
    if (!hits.length) hits = search.search(query, { combineWith: "OR", fuzzy: 0.2 });
    const scored = hits.map((hit) => ({ ...sections[hit.id], score: hit.score * exact(sections[hit.id], query), hit }));
    return scored.sort((a, b) => b.score - a.score);
  }

  // The text around the first word that was found, in parts: [text, is it a word that was found].
  function excerpt({ text, hit }) {
    const found = new Set(hit.terms);
    const marks = [...text.matchAll(WORD)].filter(([word]) => stored(word).some((form) => found.has(form)));
    const first = marks[0]?.index ?? 0;
    const start = first > BEFORE ? text.indexOf(" ", first - BEFORE) + 1 : 0; // it begins and ends with a whole word
    const end = text.length > start + LENGTH ? text.lastIndexOf(" ", start + LENGTH) : text.length;
    const parts = [[start > 0 ? "… " : "", false]];
    let place = start;
    for (const mark of marks.filter(({ index }) => index >= start && index < end)) {
      parts.push([text.slice(place, mark.index), false], [mark[0], true]);
      place = mark.index + mark[0].length;
    }
    return [...parts, [text.slice(place, end) + (end < text.length ? " …" : ""), false]];
  }

  return { index, find, excerpt };
})();

window.addEventListener("DOMContentLoaded", () => {
  const SHOWN = 30;
  const element = window.bookElement;
  const field = document.querySelector(".bd-search-container input[name=q]");
  const status = element("p", {}), list = element("ol", {});
  status.setAttribute("role", "status");
  document.getElementById("search-results").append(status, list);
  const search = bookSearch.index(bookSections);

  function item(section) {
    const link = element("a", { href: section.at }, section.title);
    const marked = bookSearch.excerpt(section).map(([text, found]) => (found ? element("mark", {}, text) : text));
    const where = section.page === section.title ? [] : [element("p", { className: "book-where" }, section.page)];
    return element("li", {}, link, ...where, element("p", {}, ...marked));
  }

  function show() {
    const query = field.value.trim();
    const found = query ? bookSearch.find(search, bookSections, query) : [];
    const count = ["Nothing", "1 section"][found.length] ?? `${found.length} sections`;
    const rest = found.length > SHOWN ? ` These are the first ${SHOWN}.` : "";
    status.textContent = query ? `${count} found for “${query}”.${rest}` : "";
    list.replaceChildren(...found.slice(0, SHOWN).map(item));
  }

  field.value = new URLSearchParams(location.search).get("q") ?? "";
  field.addEventListener("input", show);
  show();
});
