// Interactive figures on a page without a kernel: where their code is, and how their formulas are set.
(() => {
  const here = new URL(".", document.currentScript.src).href;
  requirejs.config({ paths: { anywidget: `${here}vendor/anywidget` } });

  // ipywidgets calls MathJax 2; the pages have MathJax 3.
  const hub = { Queue: (...tasks) => tasks.forEach(([, , element]) => element && MathJax.typesetPromise?.([element])) };
  const bridge = () => { if (window.MathJax && !window.MathJax.Hub) window.MathJax.Hub = hub; };
  bridge();
  document.addEventListener("DOMContentLoaded", bridge);
})();
