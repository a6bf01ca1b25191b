// What the figures share. mathllm.figures.widgets.module joins it with a figure's own file, since a page without a
// server cannot import files.

export const range = (n) => Array.from({ length: n }, (_, i) => i);
export const sum = (values) => values.reduce((total, value) => total + value, 0);
export const dot = (a, b) => sum(a.map((component, i) => component * b[i]));
export const norm = (v) => Math.hypot(...v);

// Probabilities from scores; a score of −∞ gets none.
export function softmax(logits, temperature = 1) {
  const largest = Math.max(...logits);
  const exponentials = logits.map((z) => Math.exp((z - largest) / temperature));
  const total = sum(exponentials);
  return exponentials.map((e) => e / total);
}

// KL(p‖q) in units of ln(base); infinite where q is zero and p is not.
export function klDivergence(p, q, base = Math.E) {
  const nats = sum(p.map((pi, i) => (pi > 0 ? pi * Math.log(pi / q[i]) : 0)));
  return Math.max(nats, 0) / Math.log(base);
}

// Numbers as text

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

// Elements of the page. `look` is the class of an element of a picture, or an object of attributes.

export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

export function svg(name, attributes, parent, text = "") {
  const node = set(document.createElementNS("http://www.w3.org/2000/svg", name), attributes);
  node.textContent = text;
  parent.append(node);
  return node;
}

export function html(name, className, parent, text = "") {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.textContent = text;
  parent.append(node);
  return node;
}

const attributes = (look) => (typeof look === "string" ? { class: look } : look);

export function line(parent, [x1, y1], [x2, y2], look = {}) {
  return svg("line", { x1, y1, x2, y2, ...attributes(look) }, parent);
}

export function rect(parent, [x, y], [width, height], look = {}) {
  return svg("rect", { x, y, width, height, ...attributes(look) }, parent);
}

export function circle(parent, [cx, cy], r, look = {}) {
  return svg("circle", { cx, cy, r, ...attributes(look) }, parent);
}

export const move = (dot, [cx, cy]) => set(dot, { cx, cy });

// Text at a point: it starts there, ends there, or has its middle there.
export function label(parent, [x, y], text, anchor = "start", look = {}) {
  return svg("text", { x, y, "text-anchor": anchor, ...attributes(look) }, parent, text);
}

// An arrow between two points of a picture, with a letter beyond its tip.
export function arrow([x, y], [tipX, tipY], width, parent, letter = "") {
  const length = Math.hypot(tipX - x, tipY - y);
  const [u, v] = [(tipX - x) / length, (tipY - y) / length];
  const from = (along, aside) => [tipX + width * (along * u - aside * v), tipY + width * (along * v + aside * u)];
  line(parent, [x, y], from(-2.5, 0), { "stroke-width": width });
  const corners = [from(0, 0), from(-3.5, 1.7), from(-3.5, -1.7)];
  svg("polygon", { points: corners.join(" "), stroke: "none" }, parent);
  const [letterX, letterY] = from(4.5, 0);
  if (letter) label(parent, [letterX, letterY + 5], letter, "middle", { stroke: "none" });
}

// Lines and numbers at the ticks of both axes of a box [left, right, top, bottom], and a title for each axis.
// x, y: { low, high, ticks, numbers (of the ticks; all), title }. Returns what finds the place of a point (x, y).
export function axes(parent, [left, right, top, bottom], x, y) {
  const across = (u) => left + ((u - x.low) / (x.high - x.low)) * (right - left);
  const up = (v) => bottom - ((v - y.low) / (y.high - y.low)) * (bottom - top);
  const look = (tick) => (tick === 0 ? "mathllm-axis" : "mathllm-grid");
  for (const u of x.ticks) line(parent, [across(u), bottom], [across(u), top], look(u));
  for (const v of y.ticks) line(parent, [left, up(v)], [right, up(v)], look(v));
  for (const u of x.numbers ?? x.ticks) label(parent, [across(u), bottom + 16], short(u, 2), "middle");
  for (const v of y.numbers ?? y.ticks) label(parent, [left - 7, up(v) + 4], short(v, 2), "end");
  if (x.title) label(parent, [(left + right) / 2, bottom + 35], x.title, "middle");
  const side = { transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" };
  if (y.title) svg("text", side, parent, y.title);
  return (u, v) => [across(u), up(v)];
}

// A table whose rows begin with their names. Caption and columns may be missing; row number `lit` is highlighted.
export function table(parent, caption, columns, rows, lit = -1) {
  const box = html("table", "mathllm-matrix", parent);
  if (caption) html("caption", "", box, caption);
  if (columns) {
    const head = html("tr", "", html("thead", "", box));
    ["", ...columns].forEach((name) => (html(name ? "th" : "td", "", head, name).scope = "col"));
  }
  const body = html("tbody", "", box);
  rows.forEach(([name, ...cells], i) => {
    const row = html("tr", i === lit ? "mathllm-lit" : "", body);
    html("th", "", row, name).scope = "row";
    cells.forEach((cell) => html("td", "", row, cell));
  });
  return box;
}

// The module of a figure. build(figure, model) adds its parts and returns draw(...values of the traits), which runs
// when a trait changes and returns in words what the picture shows.
export function widget(name, traits, build) {
  const render = ({ model, el }) => {
    const figure = new Figure(name, model, el);
    return figure.follow(traits, build(figure, model));
  };
  return { render };
}

// A figure: its parts stand below each other in the order in which they are added.
//
// A control shows and changes a trait of the model, given by its name; an entry of a list, [name, number]; or whatever
// else { read, write } do. Keys pressed in a figure do not reach JupyterLab, whose shortcuts move between cells.
class Figure {
  constructor(name, model, el) {
    this.model = model;
    this.root = set(html("div", `mathllm-widget mathllm-${name}`, el), { "data-lm-suppress-shortcuts": "true" });
    this.root.addEventListener("keydown", (event) => event.stopPropagation());
    this.controls = []; // functions that show the state of each control
    this.hidden = false; // whether the numbers are hidden until the reader has predicted them
  }

  get(...traits) {
    return traits.map((trait) => this.model.get(trait));
  }

  assign(values) {
    for (const [trait, value] of Object.entries(values)) this.model.set(trait, value);
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

  // A picture of bars: a name before each, a track under it and its value behind it. looks: their classes. before: each
  // lies on a second bar, wider and pale. below: the height of what else the picture shows.
  // Returns a function for each bar: (fraction of the track, value, fraction for the pale bar).
  bars(names, [left, right, height], { looks = [], before = false, below = 0 } = {}) {
    const plot = this.picture(`0 0 400 ${height * names.length + below}`);
    return names.map((name, i) => {
      const [y, middle, inset] = [4 + i * height, (i + 0.5) * height + 5, before ? 3 : 0];
      const title = label(plot, [left - 8, middle], name, "end");
      rect(plot, [left, y], [right - left, height - 8], "mathllm-track");
      const look = looks[i] ?? "mathllm-a";
      const pale = before && rect(plot, [left, y], [0, height - 8], `${look} mathllm-pale`);
      const bar = rect(plot, [left, y + inset], [0, height - 8 - 2 * inset], look);
      const number = label(plot, [right + 8, middle], "");
      return (fraction, value, fractionBefore) => {
        set(bar, { width: fraction * (right - left) });
        if (before) set(pale, { width: fractionBefore * (right - left) });
        set(title, { opacity: fraction > 0 ? 1 : 0.7 });
        number.textContent = value;
      };
    });
  }

  slider(name, [min, max, step], what, words = String) {
    const { read, write } = this.bound(what);
    const box = html("label", "", this.part("mathllm-controls"));
    html("span", "", box, name);
    const input = Object.assign(html("input", "", box), { type: "range", min, max, step });
    const output = set(html("output", "", box), { "aria-hidden": "true" }); // aria-valuetext says the same
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
    const box = html("label", "mathllm-choice", this.part("mathllm-controls"));
    html("span", "", box, name);
    const select = html("select", "", box);
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

  // A button that hides what draw() passes through shown(), so that the reader can predict it.
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

  // Lines of the read-out, each with a name. Returns a function for each line: (value, formula before it).
  rows(names) {
    return names.map((name) => {
      const row = html("div", "mathllm-row", this.readout());
      html("span", "mathllm-name", row, name);
      const [first, second] = [html("span", "mathllm-formula", row), html("strong", "mathllm-value", row)];
      return (value, formula = "") => ([first.textContent, second.textContent] = [formula, value]);
    });
  }

  // A read-out that is written anew each time. Returns a function: (title, lines).
  explanation() {
    const readout = this.readout();
    return (title, lines) => {
      readout.replaceChildren();
      html("strong", "mathllm-value", readout, title);
      lines.forEach((text) => html("span", "mathllm-formula", readout, text));
    };
  }

  // Changes any number of traits, informs the kernel once, and draws the figure once.
  change(action) {
    this.changing = true;
    action();
    this.changing = false;
    this.model.save_changes();
    this.draw();
  }

  // Draws now and whenever a trait changes. Returns a function that ends this.
  follow(traits, draw) {
    this.draw = () => {
      const words = draw(...this.get(...traits));
      if (this.plot) set(this.plot, { "aria-label": words });
      this.controls.forEach((show) => show());
    };
    const heard = () => this.changing || this.draw();
    traits.forEach((trait) => this.model.on(`change:${trait}`, heard));
    this.draw();
    return () => traits.forEach((trait) => this.model.off(`change:${trait}`, heard));
  }
}
