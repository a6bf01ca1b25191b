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
  const [predictionAfter, lossAfter] = [then.prediction, then.loss];
  return { ...now, delta2, dW2, da1, slope, delta1, dW1, after, predictionAfter, lossAfter };
}

const number = (x) => short(x, 4);

// A factor in a product: negative numbers in brackets.
function factor(x) {
  return x < 0 ? `(${number(x)})` : number(x);
}

const STEPS = [
  "forward: hidden layer", "forward: output", "loss", "backward: error at the output",
  "gradients of the output weights", "error at the hidden units", "gradients of the hidden weights", "update",
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

// Draws the boxes and the lines between them; returns what fills in the numbers of a step and lights up its way.
function graph(picture) {
  const width = (name) => NARROW[name] || WIDTH;
  const lines = EDGES.map(([from, to]) => {
    const [[x, y], [u, v]] = [NODES[from], NODES[to]];
    return svg("line", { x1: x + width(from), y1: y + HEIGHT / 2, x2: u, y2: v + HEIGHT / 2 }, picture);
  });
  const nodes = Object.entries(NODES).map(([name, [x, y]]) => {
    const box = svg("rect", { x, y, width: width(name), height: HEIGHT, rx: 6 }, picture);
    svg("text", { x: x + 2, y: y - 6, class: "mathllm-title" }, picture, TITLES[name]);
    const texts = [0, 1, 2].map((line) => {
      const look = { x: x + 6, y: y + 18 + 20 * line, class: line === 2 ? "mathllm-b" : "" };
      return svg("text", look, picture);
    });
    return { name, box, texts };
  });

  return (step, x, y, now) => {
    const numbers = shown(step, x, y, now);
    const backwards = step >= 4 && step < 8;
    for (const { name, box, texts } of nodes) {
      const light = LIT[step - 1].includes(name) ? ` mathllm-now-${backwards ? "back" : "ahead"}` : "";
      set(box, { class: `mathllm-node${light}` });
      texts.forEach((text, i) => (text.textContent = numbers[name][i] || ""));
    }
    lines.forEach((line, i) => {
      const lit = MOVING[step - 1].includes(i);
      const colour = backwards ? "mathllm-b" : "mathllm-a";
      set(line, { class: lit ? colour : "mathllm-axis", "stroke-width": lit ? 3 : 1 });
    });
  };
}

// The numbers in each box, as far as they are known in this step.
function shown(step, x, y, now) {
  const hidden = (i) => [
    `z = ${number(now.z1[i])}`, `a = ${number(now.a1[i])}`, step >= 6 && `δ = ${number(now.delta1[i])}`,
  ];
  const output = [`z = ${number(now.z2)}`, `ŷ = ${number(now.prediction)}`, step >= 4 && `δ = ${number(now.delta2)}`];
  return {
    x1: [number(x[0])], x2: [number(x[1])], h1: hidden(0), h2: hidden(1), o: step >= 2 ? output : [],
    L: [`y = ${y}`, step >= 3 && number(now.loss)],
  };
}

// A row for each number of the network: its value, its gradient, and what the update makes of it.
function tableRows(step, { dW1, delta1, dW2, delta2, after }) {
  const rows = (unit, sources, ...columns) =>
    [...sources.map((source) => `weight of ${source}`), "bias"].map((name, i) => {
      return [`${unit}: ${name}`, ...columns.map((column) => (column ? number(column[i]) : "·"))];
    });
  const inner = (i) => ({ W1, b1 }) => [...W1[i], b1[i]];
  const outer = ({ W2, b2 }) => [...W2, b2];
  return [
    ...UNITS.flatMap((unit, i) =>
      rows(unit, ["x1", "x2"], inner(i)(START), step >= 7 && [...dW1[i], delta1[i]], step >= 8 && inner(i)(after)),
    ),
    ...rows("out", UNITS, outer(START), step >= 5 && [...dW2, delta2], step >= 8 && outer(after)),
  ];
}

function render({ model, el }) {
  const figure = new Figure("mathllm-backprop-stepper", model, el);
  figure.slider("step", [1, STEPS.length, 1], "step", (step) => `${step} of ${STEPS.length}`);
  for (const i of [0, 1]) figure.slider(`input x${i + 1}`, [-2, 2, 0.1], ["inputs", i], (x) => short(x, 1));
  figure.choice("true answer y", [1, 0], "target");
  const drawGraph = graph(figure.picture("0 0 378 212"));
  const readout = figure.readout();
  const tables = html("div", "mathllm-matrices", figure.root);

  function draw() {
    const [step, x, y] = figure.get("step", "inputs", "target");
    const [now, lines] = [trace(x, y), words(step, x, y)];
    drawGraph(step, x, y, now);
    readout.replaceChildren();
    html("strong", "mathllm-value", readout, `Step ${step}, ${STEPS[step - 1]}`);
    lines.forEach((line) => html("span", "mathllm-formula", readout, line));
    tables.replaceChildren();
    table(tables, "", ["value", "gradient", "after"], tableRows(step, now));
    const order = step < 4 ? "forwards" : step < 8 ? "backwards" : "update";
    return `Network, ${order}: ${lines.join("; ")}.`;
  }

  return figure.follow(["step", "inputs", "target"], draw);
}

export default { render };
