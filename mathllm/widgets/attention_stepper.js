// Attention in five steps. Everything is computed from queries, keys and values; one row is followed in words.

export function product(a, b) {
  return a.map((row) => b[0].map((_, j) => sum(row.map((x, i) => x * b[i][j]))));
}

export function transpose(a) {
  return a[0].map((_, j) => a.map((row) => row[j]));
}

// Whether query i may see key j.
export function allowed(i, j, mask) {
  return mask === "none" || (j <= i && (mask === "causal" || i - j < 2));
}

// Every matrix of the layer. `output` is null where the example has no values.
export function attention(query, key, value, mask = "none", scaled = true) {
  const raw = product(query, transpose(key));
  const divisor = scaled ? Math.sqrt(key[0].length) : 1;
  const scores = raw.map((row) => row.map((s) => s / divisor));
  const masked = scores.map((row, i) => row.map((s, j) => (allowed(i, j, mask) ? s : -Infinity)));
  const weights = masked.map((row) => softmax(row));
  return { raw, scores, masked, weights, output: value.length ? product(weights, value) : null };
}

// JSON has no −∞; this is for the tests.
export function matrices(query, key, value, mask, scaled) {
  const { raw, scores, weights, output } = attention(query, key, value, mask, scaled);
  return [raw, scores, weights, output];
}

function number(x, digits = 2) {
  if (x === -Infinity) return "−∞";
  return fixed(x, Number.isInteger(Number(x.toFixed(9))) ? 0 : digits);
}

const STEPS = ["compare: Q Kᵀ", "scale: S", "mask: S + M", "share out: A", "blend: A V"];

// What happens to the chosen row in the chosen step, in numbers.
export function words(step, row, { tokens, query, key, value }, mask, scaled) {
  const all = attention(query, key, value, mask, scaled);
  const vector = (v) => `[${v.map((x) => number(x)).join(", ")}]`;
  const each = (line) => tokens.map((_, j) => line(j));
  if (step === 1) {
    return each((j) => {
      const terms = query[row].map((x, c) => `${number(x)}·${number(key[j][c])}`).join(" + ");
      return `with key “${tokens[j]}”: ${terms} = ${number(all.raw[row][j])}`;
    });
  }
  if (step === 2) {
    if (!scaled) return ["not divided: the scores are the dot products"];
    const root = `√${key[0].length} = ${Math.sqrt(key[0].length).toFixed(3)}`;
    const [before, after] = [all.raw[row], all.scores[row]];
    return [`divide by ${root}`, ...each((j) => `“${tokens[j]}”: ${number(before[j])} → ${number(after[j], 3)}`)];
  }
  if (step === 3) {
    return each((j) => `“${tokens[j]}”: ${allowed(row, j, mask) ? "may be seen" : "hidden, the score becomes −∞"}`);
  }
  if (step === 4) {
    const exponentials = all.masked[row].map(Math.exp);
    const total = sum(exponentials).toFixed(3);
    const lines = each((j) => {
      const [part, share] = [exponentials[j], all.weights[row][j]].map((x) => x.toFixed(3));
      return `“${tokens[j]}”: ${part} / ${total} = ${share}`;
    });
    return ["e to each score, divided by the sum", ...lines];
  }
  if (!all.output) return ["this example gives no values: it ends with the weights"];
  const terms = each((j) => `${all.weights[row][j].toFixed(3)}·${vector(value[j])}`).join(" + ");
  return [terms, `= ${vector(all.output[row])}`];
}

function shade(box, weights) {
  const shares = weights.flat().map((weight) => `${Math.round(70 * weight)}%`);
  box.querySelectorAll("tbody td").forEach((cell, k) => cell.style.setProperty("--mathllm-share", shares[k]));
}

function render({ model, el }) {
  const figure = new Figure("mathllm-attention-stepper", model, el);
  const examples = model.get("examples");
  const example = {
    read: () => model.get("example"),
    write: (i) => {
      model.set("example", i);
      model.set("row", Math.min(model.get("row"), examples[i].tokens.length - 1));
    },
  };
  const query = { read: () => model.get("row") + 1, write: (n) => model.set("row", n - 1) };
  figure.choice("example", examples.map(({ name }, i) => [i, name]), example);
  figure.slider("step", [1, STEPS.length, 1], "step", (step) => `${step} of ${STEPS.length}`);
  const queries = figure.slider("query of token", [1, 1, 1], query, (n) => examples[example.read()].tokens[n - 1]);
  figure.choice("mask", ["none", "causal", ["window", "window of 2"]], "mask");
  figure.choice("scores", [[true, "divided by √d_k"], [false, "not divided"]], "scaled");
  const tables = html("div", "mathllm-matrices", figure.root);
  const readout = figure.readout();

  // All matrices up to this step; the last of them stands out, and weights are shaded.
  function drawTables({ tokens, query, key, value }, all, step, row, scaled) {
    const parts = (matrix) => matrix[0].map((_, c) => String(c + 1));
    tables.replaceChildren();
    const draw = (title, matrix, names, columns, lit = row, digits = 2) =>
      table(tables, title, columns, matrix.map((line, i) => [names[i], ...line.map((x) => number(x, digits))]), lit);
    draw("Q", query, tokens, parts(query));
    draw("Kᵀ", transpose(key), parts(key), tokens, -1);
    if (value.length) draw("V", value, tokens, parts(value), -1);
    const done = [
      ["Q Kᵀ", all.raw], [scaled ? "S = Q Kᵀ / √d_k" : "S = Q Kᵀ", all.scores], ["S + M", all.masked],
      ["A = softmax(S + M)", all.weights], ["A V", all.output],
    ];
    done.slice(0, step).forEach(([title, matrix], i) => {
      if (!matrix) return;
      const box = draw(title, matrix, tokens, i === 4 ? parts(matrix) : tokens, row, i === 3 ? 3 : 2);
      if (i === step - 1) box.classList.add("mathllm-now");
      if (i === 3) shade(box, matrix);
    });
  }

  function draw() {
    const current = examples[model.get("example")];
    const [step, row, mask, scaled] = figure.get("step", "row", "mask", "scaled");
    queries.max = current.tokens.length;
    drawTables(current, attention(current.query, current.key, current.value, mask, scaled), step, row, scaled);
    readout.replaceChildren();
    const title = `Step ${step}, ${STEPS[step - 1]}. Query of token “${current.tokens[row]}”:`;
    html("strong", "mathllm-value", readout, title);
    words(step, row, current, mask, scaled).forEach((line) => html("span", "mathllm-formula", readout, line));
  }

  return figure.follow(["example", "step", "row", "mask", "scaled"], draw);
}

export default { render };
