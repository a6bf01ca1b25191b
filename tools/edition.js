// The one page of the book, made ready for paper: title page, contents, running heads, nothing folded, nothing too wide.
const chapters = () => [...document.querySelectorAll(".toctree-wrapper > section")];
const words = (heading) => heading.textContent.replace("¶", "").trim();

function arrange() { // oxlint-disable-line no-unused-vars -- build_editions.py calls it
  document.querySelectorAll("details").forEach((details) => { details.open = true; });
  chapters().forEach(setApart);
  chapters().forEach(setRunningHead);
  const front = document.querySelector(".body > section");
  front.classList.add("front");
  front.querySelector("h1").after(...titlePage(), contents());
  fit();
}

// The anchor before a chapter moves into it, or it would have an empty page of its own. Names of places that several
// chapters have, such as "exercises", become the chapter's own.
function setApart(chapter, i) {
  const anchor = chapter.previousElementSibling;
  if (anchor?.matches("span")) chapter.prepend(anchor);
  chapter.id = `chapter-${i}`;
  chapter.querySelectorAll("section[id]").forEach((section) => {
    chapter.querySelectorAll(`a[href="#${CSS.escape(section.id)}"]`).forEach((link) => { link.hash = `${i}-${section.id}`; });
    section.id = `${i}-${section.id}`;
  });
}

function setRunningHead(chapter, i) {
  const style = document.createElement("style");
  const text = JSON.stringify(words(chapter.querySelector("h2")));
  style.textContent = `#chapter-${i} { page: part${i}; } @page part${i} { @top-left { content: ${text}; } }`;
  document.head.append(style);
}

function titlePage() {
  const lines = ["By the authors of The Mathematics of Large Language Models", `Version ${DOCUMENTATION_OPTIONS.VERSION}`,
    "Text under CC BY 4.0, code under the MIT licence"];
  return lines.map((line) => Object.assign(document.createElement("p"), { className: "title-line", textContent: line }));
}

function contents() {
  const list = Object.assign(document.createElement("nav"), { className: "book-contents" });
  list.append(Object.assign(document.createElement("h2"), { textContent: "Contents" }));
  chapters().forEach((chapter) => {
    list.append(entry(chapter, chapter.querySelector("h2"), "entry"));
    chapter.querySelectorAll(":scope > section > h3").forEach((heading) => {
      list.append(entry(heading.parentElement, heading, "entry part"));
    });
  });
  return list;
}

function entry(target, heading, className) {
  const link = Object.assign(document.createElement("a"), { className, href: `#${target.id}` });
  link.append(Object.assign(document.createElement("span"), { textContent: words(heading) }));
  link.append(Object.assign(document.createElement("span"), { className: "page" }));
  return link;
}

function number(pages) { // oxlint-disable-line no-unused-vars -- build_editions.py calls it
  document.querySelectorAll(".book-contents a").forEach((link) => {
    link.lastChild.textContent = pages[decodeURIComponent(link.hash.slice(1))] ?? "";
  });
}

// Formulas and tables that are wider than the column become smaller; lines of code break (edition.css).
function tooWide() {
  const edge = document.querySelector(".body").getBoundingClientRect().right + 1;
  const boxes = document.querySelectorAll(".body :is(mjx-container, table, img, pre)");
  return [...boxes].filter((box) => box.getBoundingClientRect().right > edge);
}

function fit() {
  const edge = document.querySelector(".body").getBoundingClientRect().right;
  for (const box of tooWide()) {
    const { left, right } = box.getBoundingClientRect();
    box.style.zoom = 0.98 * (edge - left) / (right - left);
  }
}
