// What the figures share; mathllm.widgets.base.module puts it in front of each figure's own module.

export function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

// Probabilities from scores; a score of −∞ gets none.
export function softmax(logits, temperature = 1) {
  const largest = Math.max(...logits);
  const exponentials = logits.map((z) => Math.exp((z - largest) / temperature));
  const total = sum(exponentials);
  return exponentials.map((e) => e / total);
}

// So many decimals, a true minus sign, and never "−0.00".
export function fixed(value, digits) {
  return value.toFixed(digits).replace(/^-(?=[0.]+$)/, "").replace("-", "−");
}

// At most so many decimals: 3.50 is "3.5".
export function short(value, digits) {
  return String(Number(value.toFixed(digits))).replace("-", "−");
}

// 7.02e9 is "7.02 billion": three digits.
export function inWords(x) {
  const units = [[1e12, " trillion"], [1e9, " billion"], [1e6, " million"], [1e3, " thousand"], [0, ""]];
  const [unit, name] = units.find(([size]) => x >= size);
  return Number((x / (unit || 1)).toPrecision(3)) + name;
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function svg(name, attributes, parent, text = "") {
  const node = set(document.createElementNS("http://www.w3.org/2000/svg", name), attributes);
  node.textContent = text;
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

// An arrow between two points of a picture, with a letter beyond its tip.
function arrow([x, y], [tipX, tipY], width, parent, letter = "") {
  const length = Math.hypot(tipX - x, tipY - y);
  const [u, v] = [(tipX - x) / length, (tipY - y) / length];
  const from = (along, aside) => [tipX + width * (along * u - aside * v), tipY + width * (along * v + aside * u)];
  const [endX, endY] = from(-2.5, 0);
  svg("line", { x1: x, y1: y, x2: endX, y2: endY, "stroke-width": width }, parent);
  const corners = [from(0, 0), from(-3.5, 1.7), from(-3.5, -1.7)];
  svg("polygon", { points: corners.join(" "), stroke: "none" }, parent);
  const [letterX, letterY] = from(4.5, 0);
  if (letter) svg("text", { x: letterX, y: letterY + 5, "text-anchor": "middle", stroke: "none" }, parent, letter);
}

// A table whose rows begin with their names; caption and columns may be missing, row number `lit` stands out.
function table(parent, caption, columns, rows, lit = -1) {
  const box = html("table", "mathllm-matrix", parent);
  if (caption) html("caption", "", box, caption);
  if (columns) {
    const head = html("tr", "", html("thead", "", box));
    ["", ...columns].forEach((name) => (html(name ? "th" : "td", "", head, name).scope = "col"));
  }
  const body = html("tbody", "", box);
  rows.forEach(([name, ...cells], i) => {
    const line = html("tr", i === lit ? "mathllm-lit" : "", body);
    html("th", "", line, name).scope = "row";
    cells.forEach((cell) => html("td", "", line, cell));
  });
  return box;
}

// The box of a figure. JupyterLab would take its keys as shortcuts and the focus to a cell: here they are the figure's.
export function frame(className, el) {
  const root = set(html("div", `mathllm-widget ${className}`, el), { "data-lm-suppress-shortcuts": "true" });
  root.addEventListener("keydown", (event) => event.stopPropagation());
  return root;
}

// A figure: its parts stand below each other in the order in which they are asked for.
//
// A control shows and changes a trait of the model, given by its name; an entry of a list, [name, number]; or whatever
// else { read, write } do. follow() draws the figure whenever one of them changes.
class Figure {
  constructor(className, model, el) {
    this.model = model;
    this.root = frame(className, el);
    this.controls = []; // functions that show where each control stands
    this.hidden = false; // whether the reader is to predict the numbers
  }

  get(...traits) {
    return traits.map((trait) => this.model.get(trait));
  }

  // The last part, if it has this class, or else a new one.
  part(className) {
    const last = this.root.lastElementChild;
    return last?.className === className ? last : html("div", className, this.root);
  }

  picture(viewBox, widest = "30rem") {
    const look = { viewBox, class: "mathllm-plot", role: "img", style: `max-width: ${widest}` };
    this.plot = svg("svg", look, this.root);
    return this.plot;
  }

  // A picture of bars from left to right: a name before each, a track under it, room for its value behind it.
  bars(names, left, right, row) {
    const plot = this.picture(`0 0 400 ${row * names.length}`);
    return names.map((name, i) => {
      const [y, height] = [4 + i * row, row - 8];
      const middle = y + height / 2 + 5;
      svg("text", { x: left - 8, y: middle, "text-anchor": "end" }, plot, name);
      svg("rect", { x: left, y, width: right - left, height, class: "mathllm-track" }, plot);
      const bar = svg("rect", { x: left, y, width: 0, height, class: "mathllm-a" }, plot);
      const value = svg("text", { x: right + 8, y: middle }, plot);
      return { bar, show: (share, text) => (set(bar, { width: share * (right - left) }), (value.textContent = text)) };
    });
  }

  slider(name, [min, max, step], what, words = String) {
    const { read, write } = this.bound(what);
    const label = html("label", "", this.part("mathllm-controls"));
    html("span", "", label, name);
    const input = Object.assign(html("input", "", label), { type: "range", min, max, step });
    const output = set(html("output", "", label), { "aria-hidden": "true" }); // the slider says it itself
    input.addEventListener("input", () => this.change(() => write(Number(input.value))));
    this.controls.push(() => {
      input.value = read();
      output.textContent = words(read());
      set(input, { "aria-valuetext": output.textContent });
    });
    return input;
  }

  // options: values, or pairs of a value and its name
  choice(name, options, what) {
    const { read, write } = this.bound(what);
    const pairs = options.map((option) => [option].flat());
    const label = html("label", "mathllm-choice", this.part("mathllm-controls"));
    html("span", "", label, name);
    const select = html("select", "", label);
    for (const [value, text = value] of pairs) html("option", "", select, text).value = value;
    select.addEventListener("change", () => this.change(() => write(pairs[select.selectedIndex][0])));
    this.controls.push(() => (select.value = read()));
  }

  bound(what) {
    if (what.read) return what;
    const [trait, i] = [what].flat();
    const read = () => this.model.get(trait);
    if (i === undefined) return { read, write: (value) => this.model.set(trait, value) };
    return { read: () => read()[i], write: (value) => this.model.set(trait, read().with(i, value)) };
  }

  button(text, action) {
    const button = html("button", "mathllm-button", this.part("mathllm-buttons"), text);
    button.type = "button";
    button.addEventListener("click", () => this.change(action));
    return button;
  }

  // Lets the reader predict: what draw() passes through shown() is a question mark while they do.
  hider(what) {
    const button = this.button("", () => (this.hidden = !this.hidden));
    this.controls.push(() => (button.textContent = this.hidden ? `Show the ${what}` : `Hide the ${what} and predict`));
  }

  shown(text) {
    return this.hidden ? "?" : text;
  }

  readout() {
    return set(this.part("mathllm-readout"), { "aria-live": "polite" });
  }

  // Lines of the read-out: name, formula, value.
  rows(names) {
    return names.map((name) => {
      const row = html("div", "mathllm-row", this.readout());
      html("span", "mathllm-name", row, name);
      return { formula: html("span", "mathllm-formula", row), value: html("strong", "mathllm-value", row) };
    });
  }

  // What the reader does: the model changes as a whole, the kernel hears of it, and the figure is drawn once.
  change(action) {
    this.changing = true;
    action();
    this.changing = false;
    this.model.save_changes();
    this.draw();
  }

  // Draw now and whenever a trait changes. draw() returns what the picture shows, in words. Returns how to stop.
  follow(traits, draw) {
    this.draw = () => {
      const words = draw();
      if (this.plot) set(this.plot, { "aria-label": words });
      this.controls.forEach((show) => show());
    };
    const heard = () => this.changing || this.draw();
    traits.forEach((trait) => this.model.on(`change:${trait}`, heard));
    this.draw();
    return () => traits.forEach((trait) => this.model.off(`change:${trait}`, heard));
  }
}
