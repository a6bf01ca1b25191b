// On a narrow screen a wide formula shrinks until it fits; one that would have to become too small for that scrolls.
(() => {
  const LEAST = 0.74; // of its size: 14 pixels

  function fit() {
    const boxes = [...document.querySelectorAll('div.math:has(mjx-container[display="true"])')];
    boxes.forEach((box) => { box.style.fontSize = ""; });
    const shares = boxes.map((box) => {
      const formula = box.querySelector('mjx-container[display="true"]');
      return formula.clientWidth / formula.scrollWidth;
    });
    boxes.forEach((box, i) => {
      if (shares[i] < 1) box.style.fontSize = `${Math.max(LEAST, 0.99 * shares[i])}em`;
    });
  }

  window.addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    fit();
    window.addEventListener("resize", fit);
    document.addEventListener("toggle", fit, true); // a folded answer has no width
  });
})();
