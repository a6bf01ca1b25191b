// What every figure builds itself from; mathllm.widgets.base.module puts it in front of each figure's own module.

function svg(name, attributes, parent) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  parent.append(node);
  return node;
}

function html(name, className, parent, text = "") {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.textContent = text;
  parent.append(node);
  return node;
}

// The box of a figure. JupyterLab would take its keys as shortcuts and the focus to a cell: here they are the figure's.
function frame(className, el) {
  const root = html("div", `mathllm-widget ${className}`, el);
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.addEventListener("keydown", (event) => event.stopPropagation());
  return root;
}
