// A network of two inputs, two hidden ReLU units and one sigmoid output: forwards, backwards, and one update.

const START = { W1: [[0.15, 0.2], [0.25, 0.3]], b1: [0.35, 0.35], W2: [0.4, 0.45], b2: 0.6 };
const RATE = 0.5;

// ln(1 + e^z), for z of any size.
export function softplus(z) {
  return Math.max(z, 0) + Math.log1p(Math.exp(-Math.abs(z)));
}

function forward(x, { W1, b1, W2, b2 }, y) {
  const z1 = W1.map((row, i) => row[0] * x[0] + row[1] * x[1] + b1[i]);
  const a1 = z1.map((z) => Math.max(z, 0));
  const z2 = W2[0] * a1[0] + W2[1] * a1[1] + b2;
  return { z1, a1, z2, prediction: 1 / (1 + Math.exp(-z2)), loss: y * softplus(-z2) + (1 - y) * softplus(z2) };
}

// Every number of one step of training.
export function trace(x, y, params = START, rate = RATE) {
  const { W1, b1, W2, b2 } = params;
  const now = forward(x, params, y);
  const delta2 = now.prediction - y;
  const dW2 = now.a1.map((a) => delta2 * a);
  const da1 = W2.map((w) => w * delta2);
  const slope = now.z1.map((z) => (z > 0 ? 1 : 0));
  const delta1 = da1.map((d, i) => d * slope[i]);
  const dW1 = delta1.map((d) => x.map((value) => d * value));
  const after = {
    W1: W1.map((row, i) => row.map((w, j) => w - rate * dW1[i][j])),
    b1: b1.map((b, i) => b - rate * delta1[i]),
    W2: W2.map((w, i) => w - rate * dW2[i]),
    b2: b2 - rate * delta2,
  };
  const then = forward(x, after, y);
  return { ...now, delta2, dW2, da1, slope, delta1, dW1, after, predictionAfter: then.prediction, lossAfter: then.loss };
}

function number(x, digits = 4) {
  const text = Number(x.toFixed(digits)).toString();
  return (text === "-0" ? "0" : text).replace("-", "−");
}

// A factor in a product: negative numbers in brackets.
function factor(x) {
  return x < 0 ? `(${number(x)})` : number(x);
}

const STEPS = [
  "forward: hidden layer", "forward: output", "loss", "backward: error at the output", "gradients of the output weights",
  "error at the hidden units", "gradients of the hidden weights", "update",
];

const UNITS = ["A", "B"]; // the hidden units

// What happens in a step, in numbers.
export function words(step, x, y) {
  const t = trace(x, y);
  const { W1, b1, W2, b2 } = START;
  const both = (line) => UNITS.map(line);
  if (step === 1) {
    return both((unit, i) => {
      const sum = `${number(W1[i][0])}·${factor(x[0])} + ${number(W1[i][1])}·${factor(x[1])} + ${number(b1[i])}`;
      return `${unit}: z = ${sum} = ${number(t.z1[i])},  a = max(0, z) = ${number(t.a1[i])}`;
    });
  }
  if (step === 2) {
    return [
      `z = ${number(W2[0])}·${number(t.a1[0])} + ${number(W2[1])}·${number(t.a1[1])} + ${number(b2)} = ${number(t.z2)}`,
      `ŷ = σ(z) = 1 / (1 + ${number(Math.exp(-t.z2))}) = ${number(t.prediction)}`,
    ];
  }
  if (step === 3) return [`loss = −ln ${y ? "ŷ" : "(1 − ŷ)"} = ${number(t.loss)}`];
  if (step === 4) return [`δ = ŷ − y = ${number(t.prediction)} − ${y} = ${number(t.delta2)}`];
  if (step === 5) {
    return [
      ...both((unit, i) => `weight of ${unit}: δ·a = ${factor(t.delta2)}·${number(t.a1[i])} = ${number(t.dW2[i])}`),
      `bias: δ = ${number(t.delta2)}`,
    ];
  }
  if (step === 6) {
    return both((unit, i) => {
      const product = `weight·δ·slope = ${number(W2[i])}·${factor(t.delta2)}·${t.slope[i]}`;
      return `${unit}: ${product} = ${number(t.delta1[i])}${t.slope[i] ? "" : "  (the unit is off)"}`;
    });
  }
  if (step === 7) {
    return both((unit, i) => {
      const each = [0, 1].map((j) => `δ·x${j + 1} = ${number(t.dW1[i][j])}`).join(",  ");
      return `${unit}: ${each},  bias: δ = ${number(t.delta1[i])}`;
    });
  }
  return [
    `each number minus ${RATE} times its gradient`,
    `ŷ: ${number(t.prediction)} → ${number(t.predictionAfter)},  loss: ${number(t.loss)} → ${number(t.lossAfter)}`,
  ];
}

const [WIDTH, HEIGHT] = [96, 66];
const NODES = { x1: [2, 22], x2: [2, 142], h1: [82, 22], h2: [82, 142], o: [202, 82], L: [318, 82] };
const TITLES = { x1: "input x1", x2: "input x2", h1: "unit A", h2: "unit B", o: "output", L: "loss" };
const EDGES = [["x1", "h1"], ["x1", "h2"], ["x2", "h1"], ["x2", "h2"], ["h1", "o"], ["h2", "o"], ["o", "L"]];
const NARROW = { x1: 56, x2: 56, L: 58 };
const LIT = [["h1", "h2"], ["o"], ["L"], ["o"], [], ["h1", "h2"], [], []]; // nodes at work in each step
const MOVING = [[0, 1, 2, 3], [4, 5], [6], [6], [4, 5], [4, 5], [0, 1, 2, 3], []]; // and edges

function render({ model, el }) {
  const root = frame("mathllm-backprop-stepper", el);
  const controls = html("div", "mathllm-controls", root);

  function slider(name, range, read, write, shown) {
    const label = html("label", "", controls);
    html("span", "", label, name);
    const input = html("input", "", label);
    Object.assign(input, { type: "range", ...range });
    const output = html("output", "", label);
    input.addEventListener("input", () => {
      write(Number(input.value));
      model.save_changes();
      update();
    });
    return () => {
      input.value = read();
      output.textContent = shown();
    };
  }
  const inputs = { min: -2, max: 2, step: 0.1 };
  const refresh = [
    slider("step", { min: 1, max: 8, step: 1 }, () => model.get("step"), (n) => model.set("step", n), () => `${model.get("step")} of 8`),
    ...[0, 1].map((i) =>
      slider(`input x${i + 1}`, inputs, () => model.get("inputs")[i], (x) => model.set("inputs", model.get("inputs").with(i, x)),
        () => number(model.get("inputs")[i], 1)),
    ),
  ];
  const label = html("label", "mathllm-choice", controls);
  html("span", "", label, "true answer y");
  const select = html("select", "", label);
  [1, 0].forEach((y) => (html("option", "", select, String(y)).value = y));
  select.addEventListener("change", () => {
    model.set("target", Number(select.value));
    model.save_changes();
    update();
  });

  const picture = svg("svg", { viewBox: "0 0 378 212", class: "mathllm-plot", role: "img" }, root);
  const width = (name) => NARROW[name] || WIDTH;
  const lines = EDGES.map(([from, to]) => {
    const [[x, y], [u, v]] = [NODES[from], NODES[to]];
    return svg("line", { x1: x + width(from), y1: y + HEIGHT / 2, x2: u, y2: v + HEIGHT / 2 }, picture);
  });
  const texts = {};
  const boxes = {};
  for (const [name, [x, y]] of Object.entries(NODES)) {
    boxes[name] = svg("rect", { x, y, width: width(name), height: HEIGHT, rx: 6 }, picture);
    svg("text", { x: x + 2, y: y - 6, class: "mathllm-title" }, picture).textContent = TITLES[name];
    texts[name] = [0, 1, 2].map((line) => svg("text", { x: x + 6, y: y + 18 + 20 * line }, picture));
  }
  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const tables = html("div", "mathllm-matrices", root);

  function update() {
    const [step, x, y] = [model.get("step"), model.get("inputs"), model.get("target")];
    const t = trace(x, y);
    const hidden = (i) => [`z = ${number(t.z1[i])}`, `a = ${number(t.a1[i])}`, step >= 6 && `δ = ${number(t.delta1[i])}`];
    const shown = {
      x1: [number(x[0])], x2: [number(x[1])], h1: hidden(0), h2: hidden(1),
      o: [step >= 2 && `z = ${number(t.z2)}`, step >= 2 && `ŷ = ${number(t.prediction)}`, step >= 4 && `δ = ${number(t.delta2)}`],
      L: [`y = ${y}`, step >= 3 && number(t.loss)],
    };
    const backwards = step >= 4 && step < 8;
    for (const name of Object.keys(NODES)) {
      const lit = LIT[step - 1].includes(name);
      boxes[name].setAttribute("class", `mathllm-node${lit ? ` mathllm-now-${backwards ? "back" : "ahead"}` : ""}`);
      texts[name].forEach((text, i) => {
        text.textContent = shown[name][i] || "";
        text.setAttribute("class", i === 2 ? "mathllm-b" : "");
      });
    }
    lines.forEach((line, i) => {
      const lit = MOVING[step - 1].includes(i);
      line.setAttribute("class", lit ? (backwards ? "mathllm-b" : "mathllm-a") : "mathllm-axis");
      line.setAttribute("stroke-width", lit ? 3 : 1);
    });
    refresh.forEach((show) => show());
    select.value = String(y);
    readout.replaceChildren();
    html("strong", "mathllm-value", readout, `Step ${step}, ${STEPS[step - 1]}`);
    words(step, x, y).forEach((line) => html("span", "mathllm-formula", readout, line));

    tables.replaceChildren();
    const { W1, b1, W2, b2 } = START;
    const box = html("table", "mathllm-matrix", tables);
    const head = html("tr", "", html("thead", "", box));
    ["", "value", "gradient", "after"].forEach((name) => (html(name ? "th" : "td", "", head, name).scope = "col"));
    const body = html("tbody", "", box);
    function rows(unit, names, values, gradients, after) {
      names.forEach((name, i) => {
        const line = html("tr", "", body);
        html("th", "", line, `${unit}: ${name}`).scope = "row";
        [values, gradients, after].forEach((column) => html("td", "", line, column ? number(column[i]) : "·"));
      });
    }
    [0, 1].forEach((i) => {
      const gradient = step >= 7 && [...t.dW1[i], t.delta1[i]];
      rows(UNITS[i], ["weight of x1", "weight of x2", "bias"], [...W1[i], b1[i]], gradient, step >= 8 && [...t.after.W1[i], t.after.b1[i]]);
    });
    const gradient = step >= 5 && [...t.dW2, t.delta2];
    rows("out", ["weight of A", "weight of B", "bias"], [...W2, b2], gradient, step >= 8 && [...t.after.W2, t.after.b2]);
    const order = step < 4 ? "forwards" : step < 8 ? "backwards" : "update";
    picture.setAttribute("aria-label", `Network, ${order}: ${words(step, x, y).join("; ")}.`);
  }

  const traits = ["inputs", "target", "step"].map((name) => `change:${name}`);
  traits.forEach((name) => model.on(name, update));
  update();
  return () => traits.forEach((name) => model.off(name, update));
}

export default { render };
