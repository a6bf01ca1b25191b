// Attention in five steps. Everything is computed from queries, keys and values; one row is followed in words.
import { fixed, html, softmax, sum, table, widget } from "./elements.js";

export function product(a, b) {
  return a.map((row) => b[0].map((_, j) => sum(row.map((x, i) => x * b[i][j]))));
}

export const transpose = (a) => a[0].map((_, j) => a.map((row) => row[j]));

// Whether query i may attend to key j.
const allowed = (i, j, mask) => mask === "none" || (j <= i && (mask === "causal" || i - j < 2));

// Every matrix of the layer. `output` is null where the example has no values.
export function attention(query, key, value, mask = "none", scaled = true) {
  const raw = product(query, transpose(key));
  const divisor = scaled ? Math.sqrt(key[0].length) : 1;
  const scores = raw.map((row) => row.map((s) => s / divisor));
  const masked = scores.map((row, i) => row.map((s, j) => (allowed(i, j, mask) ? s : -Infinity)));
  const weights = masked.map((row) => softmax(row));
  return { raw, scores, masked, weights, output: value.length ? product(weights, value) : null };
}

function number(x, digits = 2) {
  if (x === -Infinity) return "−∞";
  return fixed(x, Number.isInteger(Number(x.toFixed(9))) ? 0 : digits);
}

const STEPS = ["scores: Q Kᵀ", "scale: S", "mask: S + M", "softmax: weights A", "output: A V"];

// What happens to the row of a query in a step, in numbers.
export function words(step, row, { tokens, query, key, value }, mask, scaled) {
  const { raw, scores, masked, weights, output } = attention(query, key, value, mask, scaled);
  const vector = (v) => `[${v.map((x) => number(x)).join(", ")}]`;
  const each = (line) => tokens.map((token, j) => line(`“${token}”`, j));
  if (step === 1) {
    const terms = (j) => query[row].map((x, c) => `${number(x)}·${number(key[j][c])}`).join(" + ");
    return each((token, j) => `with key ${token}: ${terms(j)} = ${number(raw[row][j])}`);
  }
  if (step === 2) {
    if (!scaled) return ["not divided: the scores are the dot products"];
    const root = `√${key[0].length} = ${Math.sqrt(key[0].length).toFixed(3)}`;
    const lines = each((token, j) => `${token}: ${number(raw[row][j])} → ${number(scores[row][j], 3)}`);
    return [`divide by ${root}`, ...lines];
  }
  if (step === 3) {
    return each((token, j) => `${token}: ${allowed(row, j, mask) ? "allowed" : "masked, the score becomes −∞"}`);
  }
  if (step === 4) {
    const exponentials = masked[row].map(Math.exp);
    const total = sum(exponentials).toFixed(3);
    const divide = (token, j) => `${token}: ${exponentials[j].toFixed(3)} / ${total} = ${weights[row][j].toFixed(3)}`;
    return ["e to each score, divided by the sum", ...each(divide)];
  }
  if (!output) return ["this example has no values: it ends with the weights"];
  const terms = each((_, j) => `${weights[row][j].toFixed(3)}·${vector(value[j])}`).join(" + ");
  return [terms, `= ${vector(output[row])}`];
}

// All matrices up to a step; the last of them is highlighted, and weights are shaded.
function drawTables(parent, { tokens, query, key, value }, step, row, mask, scaled) {
  const { raw, scores, masked, weights, output } = attention(query, key, value, mask, scaled);
  const parts = (matrix) => matrix[0].map((_, c) => String(c + 1));
  const draw = (title, matrix, names, columns, lit = row, digits = 2) =>
    table(parent, title, columns, matrix.map((line, i) => [names[i], ...line.map((x) => number(x, digits))]), lit);
  parent.replaceChildren();
  draw("Q", query, tokens, parts(query));
  draw("Kᵀ", transpose(key), parts(key), tokens, -1);
  if (value.length) draw("V", value, tokens, parts(value), -1);
  const results = [
    ["Q Kᵀ", raw], [scaled ? "S = Q Kᵀ / √d_k" : "S = Q Kᵀ", scores], ["S + M", masked],
    ["A = softmax(S + M)", weights], ["A V", output],
  ];
  results.slice(0, step).forEach(([title, matrix], i) => {
    if (!matrix) return;
    const box = draw(title, matrix, tokens, i === 4 ? parts(matrix) : tokens, row, i === 3 ? 3 : 2);
    if (i === step - 1) box.classList.add("mathllm-now");
    const shade = (cell, k) => cell.style.setProperty("--mathllm-share", `${Math.round(70 * weights.flat()[k])}%`);
    if (i === 3) box.querySelectorAll("tbody td").forEach(shade);
  });
}

export default widget("attention-stepper", ["example", "step", "row", "mask", "scaled"], (figure, model) => {
  const examples = model.get("examples");
  const choose = (i) => figure.assign({ example: i, row: Math.min(model.get("row"), examples[i].tokens.length - 1) });
  const example = { read: () => model.get("example"), write: choose };
  const query = { read: () => model.get("row") + 1, write: (n) => model.set("row", n - 1) };
  figure.choice("example", examples.map(({ name }, i) => [i, name]), example);
  figure.slider("step", [1, STEPS.length, 1], "step", (step) => `${step} of ${STEPS.length}`);
  const queries = figure.slider("query of token", [1, 1, 1], query, (n) => examples[example.read()].tokens[n - 1]);
  figure.choice("mask", ["none", "causal", ["window", "window of 2"]], "mask");
  figure.choice("scores", [[true, "divided by √d_k"], [false, "not divided"]], "scaled");
  const tables = html("div", "mathllm-matrices", figure.root);
  const explain = figure.explanation();

  return (i, step, row, mask, scaled) => {
    const { tokens } = examples[i];
    queries.max = tokens.length;
    drawTables(tables, examples[i], step, row, mask, scaled);
    const title = `Step ${step}, ${STEPS[step - 1]}. Query of token “${tokens[row]}”:`;
    explain(title, words(step, row, examples[i], mask, scaled));
  };
});
