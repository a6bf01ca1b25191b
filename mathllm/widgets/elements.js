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
