// Paper is white: a dark page is printed like a light one.
(() => {
  const page = document.documentElement.dataset;
  let theme;
  window.addEventListener("beforeprint", () => { theme = page.theme; page.theme = "light"; });
  window.addEventListener("afterprint", () => { page.theme = theme; });
})();
