// Interactive figures on a page without a kernel. What draws them weighs more than the page, so it is loaded when the
// first figure comes near; then all of the page are drawn.
(() => {
  const NEAR = "1000px";
  const vendor = new URL("vendor/", document.currentScript.src).href;
  const figures = document.querySelectorAll('script[type="application/vnd.jupyter.widget-view+json"]');

  function add(name, data = {}) {
    return new Promise((resolve) => {
      const script = Object.assign(document.createElement("script"), { src: `${vendor}${name}`, onload: resolve });
      Object.assign(script.dataset, data);
      document.head.append(script);
    });
  }

  // ipywidgets calls MathJax 2; the pages have MathJax 3.
  const hub = { Queue: (...tasks) => tasks.forEach(([, , element]) => element && MathJax.typesetPromise?.([element])) };

  async function draw() {
    near.disconnect();
    window.removeEventListener("beforeprint", draw);
    await window.MathJax?.startup?.promise; // it must not take require.js for a loader of its own
    if (window.MathJax && !MathJax.Hub) MathJax.Hub = hub;
    await add("require.js");
    requirejs.config({ paths: { anywidget: `${vendor}anywidget` } });
    await add("embed-amd.js", { jupyterWidgetsCdn: vendor });
  }

  const near = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && draw(), { rootMargin: NEAR });
  figures.forEach((figure) => near.observe(figure.parentElement));
  window.addEventListener("beforeprint", draw);
})();
