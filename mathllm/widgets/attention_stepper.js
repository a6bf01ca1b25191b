// Attention in five steps. Everything is computed from queries, keys and values; one row is followed in words.

export function product(a, b) {
  return a.map((row) => b[0].map((_, j) => row.reduce((sum, x, i) => sum + x * b[i][j], 0)));
}

export function transpose(a) {
  return a[0].map((_, j) => a.map((row) => row[j]));
}

// Whether query i may see key j.
export function allowed(i, j, mask) {
  return mask === "none" || (j <= i && (mask === "causal" || i - j < 2));
}

// Softmax of one row, in which −∞ gets nothing.
export function softmax(row) {
  const largest = Math.max(...row);
  const exponentials = row.map((s) => Math.exp(s - largest));
  const sum = exponentials.reduce((total, e) => total + e, 0);
  return exponentials.map((e) => e / sum);
}

// Every matrix of the layer. `output` is null where the example has no values.
export function attention(query, key, value, mask = "none", scaled = true) {
  const raw = product(query, transpose(key));
  const divisor = scaled ? Math.sqrt(key[0].length) : 1;
  const scores = raw.map((row) => row.map((s) => s / divisor));
  const masked = scores.map((row, i) => row.map((s, j) => (allowed(i, j, mask) ? s : -Infinity)));
  const weights = masked.map(softmax);
  return { raw, scores, masked, weights, output: value.length ? product(weights, value) : null };
}

// JSON has no −∞; this is for the tests.
export function matrices(query, key, value, mask, scaled) {
  const { raw, scores, weights, output } = attention(query, key, value, mask, scaled);
  return [raw, scores, weights, output];
}

function number(x, digits = 2) {
  if (x === -Infinity) return "−∞";
  const text = Number.isInteger(Number(x.toFixed(9))) ? x.toFixed(0) : x.toFixed(digits);
  return text.replace(/^-(?=0\.?0*$)/, "").replace("-", "−");
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
    return [`divide by ${root}`, ...each((j) => `“${tokens[j]}”: ${number(all.raw[row][j])} → ${number(all.scores[row][j], 3)}`)];
  }
  if (step === 3) {
    return each((j) => `“${tokens[j]}”: ${allowed(row, j, mask) ? "may be seen" : "hidden, the score becomes −∞"}`);
  }
  if (step === 4) {
    const exponentials = all.masked[row].map(Math.exp);
    const sum = exponentials.reduce((total, e) => total + e, 0);
    const lines = each((j) => `“${tokens[j]}”: ${exponentials[j].toFixed(3)} / ${sum.toFixed(3)} = ${all.weights[row][j].toFixed(3)}`);
    return ["e to each score, divided by the sum", ...lines];
  }
  if (!all.output) return ["this example gives no values: it ends with the weights"];
  const terms = each((j) => `${all.weights[row][j].toFixed(3)}·${vector(value[j])}`).join(" + ");
  return [terms, `= ${vector(all.output[row])}`];
}

function render({ model, el }) {
  const root = frame("mathllm-attention-stepper", el);
  const controls = html("div", "mathllm-controls", root);
  const current = () => model.get("examples")[model.get("example")];

  function choice(name, options, read, write) {
    const label = html("label", "mathllm-choice", controls);
    html("span", "", label, name);
    const select = html("select", "", label);
    options.forEach(([value, text]) => (html("option", "", select, text).value = value));
    select.addEventListener("change", () => {
      write(select.value);
      model.save_changes();
      update();
    });
    return () => (select.value = read());
  }
  function slider(name, max, read, write, shown) {
    const label = html("label", "", controls);
    html("span", "", label, name);
    const input = html("input", "", label);
    Object.assign(input, { type: "range", min: 1, step: 1 });
    const output = html("output", "", label);
    input.addEventListener("input", () => {
      write(Number(input.value));
      model.save_changes();
      update();
    });
    return () => {
      input.max = max();
      input.value = read();
      output.textContent = shown();
      input.setAttribute("aria-valuetext", shown());
    };
  }

  const examples = model.get("examples").map(({ name }, i) => [i, name]);
  const masks = [["none", "none"], ["causal", "causal"], ["window", "window of 2"]];
  const divisions = [["yes", "divided by √d_k"], ["no", "not divided"]];
  const refresh = [
    choice("example", examples, () => model.get("example"), (i) => {
      model.set("example", Number(i));
      model.set("row", Math.min(model.get("row"), current().tokens.length - 1));
    }),
    slider("step", () => STEPS.length, () => model.get("step"), (n) => model.set("step", n), () => `${model.get("step")} of 5`),
    slider("query of token", () => current().tokens.length, () => model.get("row") + 1, (n) => model.set("row", n - 1),
      () => current().tokens[model.get("row")]),
    choice("mask", masks, () => model.get("mask"), (name) => model.set("mask", name)),
    choice("scores", divisions, () => (model.get("scaled") ? "yes" : "no"), (answer) => model.set("scaled", answer === "yes")),
  ];

  const picture = html("div", "mathllm-matrices", root);
  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");

  function table(title, rows, names, columns, { lit = -1, digits = 2, shade = false, now = false } = {}) {
    const box = html("table", `mathllm-matrix${now ? " mathllm-now" : ""}`, picture);
    html("caption", "", box, title);
    const head = html("tr", "", html("thead", "", box));
    html("td", "", head);
    columns.forEach((name) => (html("th", "", head, name).scope = "col"));
    const body = html("tbody", "", box);
    rows.forEach((row, i) => {
      const line = html("tr", i === lit ? "mathllm-lit" : "", body);
      html("th", "", line, names[i]).scope = "row";
      row.forEach((x) => {
        const cell = html("td", "", line, number(x, digits));
        if (shade) cell.style.setProperty("--mathllm-share", `${Math.round(70 * x)}%`);
      });
    });
  }

  function update() {
    const { tokens, query, key, value } = current();
    const [step, row, mask, scaled] = ["step", "row", "mask", "scaled"].map((name) => model.get(name));
    const all = attention(query, key, value, mask, scaled);
    const parts = (matrix) => matrix[0].map((_, c) => String(c + 1));
    picture.replaceChildren();
    table("Q", query, tokens, parts(query), { lit: row });
    table("Kᵀ", transpose(key), parts(key), tokens);
    if (value.length) table("V", value, tokens, parts(value));
    const done = [
      ["Q Kᵀ", all.raw], [scaled ? "S = Q Kᵀ / √d_k" : "S = Q Kᵀ", all.scores], ["S + M", all.masked],
      ["A = softmax(S + M)", all.weights], ["A V", all.output],
    ];
    done.slice(0, step).forEach(([title, matrix], i) => {
      const columns = i === 4 && matrix ? parts(matrix) : tokens;
      if (matrix) table(title, matrix, tokens, columns, { lit: row, digits: i === 3 ? 3 : 2, shade: i === 3, now: i === step - 1 });
    });
    refresh.forEach((show) => show());
    readout.replaceChildren();
    html("strong", "mathllm-value", readout, `Step ${step}, ${STEPS[step - 1]}. Query of token “${tokens[row]}”:`);
    words(step, row, current(), mask, scaled).forEach((line) => html("span", "mathllm-formula", readout, line));
  }

  const traits = ["example", "step", "row", "mask", "scaled"].map((name) => `change:${name}`);
  traits.forEach((name) => model.on(name, update));
  update();
  return () => traits.forEach((name) => model.off(name, update));
}

export default { render };
