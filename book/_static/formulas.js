// On a narrow screen a wide formula shrinks until it fits. One that would become too small for that is broken into lines,
// at wide spaces and, if need be, before relations such as =. A formula in which there is no such place scrolls.
(() => {
  const LEAST = 0.74; // of its size: 14 pixels
  const RELATION = /^[=≈≤≥<>∝→⟺⟹≡∼]$/;

  function share(box) {
    const formula = box.querySelector('mjx-container[display="true"]');
    return formula.clientWidth / formula.scrollWidth;
  }

  // Mark where lines may end. `shown` is drawn, without text; `meant` is the same formula in MathML.
  function breakable(shown, meant) {
    if (meant.localName === "mtable") {
      if (meant.getAttribute("columnalign")?.startsWith("right")) { // lines of an equation, not a matrix
        shown.classList.add("book-rows");
        const cells = [...shown.querySelectorAll("mjx-mtd")].filter((cell) => cell.closest("mjx-mtable") === shown);
        meant.querySelectorAll(":scope > mtr > mtd").forEach((cell, i) => breakable(cells[i], cell));
      }
      return;
    }
    const parts = [...shown.children].filter((part) => part.localName !== "mjx-tstrut");
    if (parts.length !== meant.children.length) return;
    if (parts.length === 1 && /^(math|mtd|mrow|mstyle)$/.test(meant.localName)) breakable(parts[0], meant.children[0]);
    parts.slice(1).forEach((part, i) => {
      const symbol = meant.children[i + 1];
      const wide = symbol.matches('mstyle:has(> mspace:only-child:is([width="1em"], [width="2em"]))'); // quad, qquad
      const relation = symbol.matches("mo") && RELATION.test(symbol.textContent);
      if (!wide && !relation) return;
      const end = document.createElement("wbr");
      end.classList.toggle("book-relation", relation);
      part.before(end);
    });
  }

  // All boxes of `part` together: first all are measured, then all are changed, since a page that has changed must be laid
  // out anew before the next measurement.
  function fit(part) {
    const boxes = [...part.querySelectorAll('div.math:has(mjx-container[display="true"])')];
    boxes.forEach((box) => {
      box.style.fontSize = "";
      box.classList.remove("book-lines", "book-shorter");
    });
    const shares = new Map(boxes.map((box) => [box, share(box)]));
    const measure = (some) => some.forEach((box) => shares.set(box, share(box)));
    const long = boxes.filter((box) => shares.get(box) < LEAST);
    long.forEach((box) => {
      const meant = box.querySelector("mjx-assistive-mml math"); // none where the reader's settings of MathJax say so
      if (meant && !box.querySelector("wbr, .book-rows")) breakable(box.querySelector("mjx-math"), meant);
      box.classList.add("book-lines");
    });
    measure(long);
    const longer = long.filter((box) => shares.get(box) < LEAST);
    longer.forEach((box) => box.classList.add("book-shorter"));
    measure(longer);
    boxes.forEach((box) => {
      const size = 0.99 * shares.get(box);
      if (long.includes(box)) box.style.fontSize = `${Math.max(LEAST, Math.min(0.9, size))}em`;
      else if (shares.get(box) < 1) box.style.fontSize = `${size}em`;
    });
  }

  window.addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    fit(document);
    const article = document.querySelector(".bd-article");
    let width = article?.clientWidth;
    let still; // when a sidebar has slid away, or a window has its new size
    if (article) new ResizeObserver(() => {
      if (article.clientWidth === width) return; // its height changes whenever an answer is opened
      width = article.clientWidth;
      clearTimeout(still);
      still = setTimeout(fit, 100, document);
    }).observe(article);
    document.addEventListener("toggle", ({ target }) => fit(target), true); // a folded answer has no width
  });
})();
