// A network of two inputs, two hidden ReLU units and one sigmoid output: forward pass, backward pass, and one update.
import { html, label, line, range, rect, set, short, table, widget } from "./elements.js";

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
  const derivative = now.z1.map((z) => (z > 0 ? 1 : 0)); // of the ReLU
  const delta1 = da1.map((d, i) => d * derivative[i]);
  const dW1 = delta1.map((d) => x.map((value) => d * value));
  const after = {
    W1: W1.map((row, i) => row.map((w, j) => w - rate * dW1[i][j])),
    b1: b1.map((b, i) => b - rate * delta1[i]),
    W2: W2.map((w, i) => w - rate * dW2[i]),
    b2: b2 - rate * delta2,
  };
  const { prediction: predictionAfter, loss: lossAfter } = forward(x, after, y);
  return { ...now, delta2, dW2, da1, derivative, delta1, dW1, after, predictionAfter, lossAfter };
}

const number = (x) => short(x, 4);
const factor = (x) => (x < 0 ? `(${number(x)})` : number(x)); // in a product

const UNITS = ["A", "B"]; // the hidden units
const { W1, b1, W2, b2 } = START;

// What happens in each step: its name, and the lines that say it in numbers.
const STEPS = [
  ["forward: hidden layer", (t, x) => UNITS.map((unit, i) => {
    const sum = `${number(W1[i][0])}·${factor(x[0])} + ${number(W1[i][1])}·${factor(x[1])} + ${number(b1[i])}`;
    return `${unit}: z = ${sum} = ${number(t.z1[i])},  a = max(0, z) = ${number(t.a1[i])}`;
  })],
  ["forward: output", ({ a1, z2, prediction }) => [
    `z = ${number(W2[0])}·${number(a1[0])} + ${number(W2[1])}·${number(a1[1])} + ${number(b2)} = ${number(z2)}`,
    `ŷ = σ(z) = 1 / (1 + ${number(Math.exp(-z2))}) = ${number(prediction)}`,
  ]],
  ["loss", ({ loss }, x, y) => [`loss = −ln ${y ? "ŷ" : "(1 − ŷ)"} = ${number(loss)}`]],
  ["backward: error at the output", ({ prediction, delta2 }, x, y) => [
    `δ = ŷ − y = ${number(prediction)} − ${y} = ${number(delta2)}`,
  ]],
  ["gradients of the output weights", ({ a1, delta2, dW2 }) => [
    ...UNITS.map((unit, i) => `weight of ${unit}: δ·a = ${factor(delta2)}·${number(a1[i])} = ${number(dW2[i])}`),
    `bias: δ = ${number(delta2)}`,
  ]],
  ["error at the hidden units", ({ delta1, delta2, derivative }) => UNITS.map((unit, i) => {
    const product = `weight·δ·ReLU′(z) = ${number(W2[i])}·${factor(delta2)}·${derivative[i]}`;
    return `${unit}: ${product} = ${number(delta1[i])}${derivative[i] ? "" : "  (the unit is inactive)"}`;
  })],
  ["gradients of the hidden weights", ({ dW1, delta1 }) => UNITS.map((unit, i) => {
    const each = [0, 1].map((j) => `δ·x${j + 1} = ${number(dW1[i][j])}`).join(",  ");
    return `${unit}: ${each},  bias: δ = ${number(delta1[i])}`;
  })],
  ["update", (t) => [
    `each number minus ${RATE} times its gradient`,
    `ŷ: ${number(t.prediction)} → ${number(t.predictionAfter)},  loss: ${number(t.loss)} → ${number(t.lossAfter)}`,
  ]],
];

export function words(step, x, y) {
  return STEPS[step - 1][1](trace(x, y), x, y);
}

// The boxes of the graph: name, place, width, and the numbers in them, as far as they are known in a step.
const unit = (i) => (t, step) => [
  `z = ${number(t.z1[i])}`, `a = ${number(t.a1[i])}`, step >= 6 && `δ = ${number(t.delta1[i])}`,
];
const NODES = {
  x1: ["input x1", [2, 22], 56, (t, step, x) => [number(x[0])]],
  x2: ["input x2", [2, 142], 56, (t, step, x) => [number(x[1])]],
  h1: ["unit A", [82, 22], 96, unit(0)],
  h2: ["unit B", [82, 142], 96, unit(1)],
  o: ["output", [202, 82], 96, ({ z2, prediction, delta2 }, step) => [
    step >= 2 && `z = ${number(z2)}`, step >= 2 && `ŷ = ${number(prediction)}`, step >= 4 && `δ = ${number(delta2)}`,
  ]],
  L: ["loss", [318, 82], 58, (t, step, x, y) => [`y = ${y}`, step >= 3 && number(t.loss)]],
};
const HEIGHT = 66;
const EDGES = [["x1", "h1"], ["x1", "h2"], ["x2", "h1"], ["x2", "h2"], ["h1", "o"], ["h2", "o"], ["o", "L"]];
const LIT = [["h1", "h2"], ["o"], ["L"], ["o"], [], ["h1", "h2"], [], []]; // the nodes that each step computes
const MOVING = [[0, 1, 2, 3], [4, 5], [6], [6], [4, 5], [4, 5], [0, 1, 2, 3], []]; // the edges that it uses

// Draws the boxes and the lines between them; returns what writes the numbers of a step and highlights its path.
function graph(picture) {
  const lines = EDGES.map(([from, to]) => {
    const [[, [x, y], width], [, [u, v]]] = [NODES[from], NODES[to]];
    return line(picture, [x + width, y + HEIGHT / 2], [u, v + HEIGHT / 2]);
  });
  const nodes = Object.entries(NODES).map(([name, [title, [x, y], width, numbers]]) => {
    const box = rect(picture, [x, y], [width, HEIGHT], { rx: 6 });
    label(picture, [x + 2, y - 6], title, "start", "mathllm-title");
    const looks = ["", "", "mathllm-b"];
    const texts = looks.map((look, i) => label(picture, [x + 6, y + 18 + 20 * i], "", "start", look));
    return { name, box, numbers, texts };
  });

  return (step, x, y) => {
    const [now, backwards] = [trace(x, y), step >= 4 && step < 8];
    for (const { name, box, numbers, texts } of nodes) {
      const light = LIT[step - 1].includes(name) ? ` mathllm-now-${backwards ? "back" : "ahead"}` : "";
      set(box, { class: `mathllm-node${light}` });
      const values = numbers(now, step, x, y);
      texts.forEach((text, i) => (text.textContent = values[i] || ""));
    }
    lines.forEach((edge, i) => {
      const [lit, colour] = [MOVING[step - 1].includes(i), backwards ? "mathllm-b" : "mathllm-a"];
      set(edge, { class: lit ? colour : "mathllm-axis", "stroke-width": lit ? 3 : 1 });
    });
  };
}

// A row for each number of the network: its value, its gradient, and its value after the update.
function tableRows(step, { dW1, delta1, dW2, delta2, after }) {
  const inner = (i) => ({ W1, b1 }) => [...W1[i], b1[i]];
  const outer = ({ W2, b2 }) => [...W2, b2];
  const rows = (unit, sources, values, gradients, known) =>
    [...sources.map((source) => `weight of ${source}`), "bias"].map((name, i) => {
      const columns = [values(START), step >= known && gradients, step >= 8 && values(after)];
      return [`${unit}: ${name}`, ...columns.map((column) => (column ? number(column[i]) : "·"))];
    });
  const hidden = UNITS.flatMap((unit, i) => rows(unit, ["x1", "x2"], inner(i), [...dW1[i], delta1[i]], 7));
  return [...hidden, ...rows("out", UNITS, outer, [...dW2, delta2], 5)];
}

export default widget("backprop-stepper", ["step", "inputs", "target"], (figure) => {
  figure.slider("step", [1, STEPS.length, 1], "step", (step) => `${step} of ${STEPS.length}`);
  for (const i of range(2)) figure.slider(`input x${i + 1}`, [-2, 2, 0.1], ["inputs", i], (x) => short(x, 1));
  figure.choice("target y", [1, 0], "target");
  const drawGraph = graph(figure.picture("0 0 378 212"));
  const explain = figure.explanation();
  const tables = html("div", "mathllm-matrices", figure.root);

  return (step, x, y) => {
    const lines = words(step, x, y);
    drawGraph(step, x, y);
    explain(`Step ${step}, ${STEPS[step - 1][0]}`, lines);
    tables.replaceChildren();
    table(tables, "", ["value", "gradient", "updated"], tableRows(step, trace(x, y)));
    const order = step < 4 ? "forward pass" : step < 8 ? "backward pass" : "update";
    return `Network, ${order}: ${lines.join("; ")}.`;
  };
});
