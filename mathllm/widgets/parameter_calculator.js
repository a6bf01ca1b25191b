// The parameters of a transformer by part, from its sizes alone.

// sizes: vocabulary V, width D, layers L, hidden F, context (0: no position table), key_width (D unless keys and values
// are shared), gated, bias, tied. Norms: with biases two vectors each, else one; two per block and one at the end.
export function parameterCount(sizes) {
  const { vocabulary: V, width: D, layers: L, hidden: F, context = 0 } = sizes;
  const { key_width: G = D, gated = false, bias = true, tied = true } = sizes;
  const attention = 2 * D * D + 2 * D * G + (bias ? 2 * D + 2 * G : 0);
  const network = (gated ? 3 : 2) * D * F + (bias ? F + D : 0);
  return {
    embedding: V * D,
    positions: context * D,
    attention: L * attention,
    feed_forward: L * network,
    norms: (bias ? 2 : 1) * D * (2 * L + 1),
    unembedding: tied ? 0 : V * D,
  };
}

export function total(counts) {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

// 124439808 -> "124 million"; three digits.
export function inWords(count) {
  const [unit, name] = count >= 1e9 ? [1e9, " billion"] : count >= 1e6 ? [1e6, " million"] : [1e3, " thousand"];
  return Number((count / unit).toPrecision(3)) + name;
}

const NAMES = {
  embedding: "embedding", positions: "positions", attention: "attention", feed_forward: "networks", norms: "norms",
  unembedding: "unembedding",
};
const SLIDERS = [
  ["width", "width D", 64, 12288, 64],
  ["layers", "blocks L", 1, 96, 1],
  ["hidden", "hidden width F", 64, 49152, 64],
  ["vocabulary", "vocabulary V", 256, 131072, 1],
];
const [LEFT, RIGHT, ROW] = [116, 324, 30];

function render({ model, el }) {
  const root = frame("mathllm-parameter-calculator", el);
  const names = Object.keys(NAMES);
  const picture = svg("svg", { viewBox: `0 0 400 ${ROW * names.length + 6}`, class: "mathllm-plot", role: "img" }, root);
  const bars = names.map((name, i) => {
    const y = 4 + i * ROW;
    svg("text", { x: LEFT - 8, y: y + 16, "text-anchor": "end" }, picture).textContent = NAMES[name];
    svg("rect", { x: LEFT, y, width: RIGHT - LEFT, height: 22, class: "mathllm-track" }, picture);
    const bar = svg("rect", { x: LEFT, y, width: 0, height: 22, class: "mathllm-a" }, picture);
    return { bar, value: svg("text", { x: RIGHT + 8, y: y + 16 }, picture) };
  });

  const controls = html("div", "mathllm-controls", root);
  const models = model.get("models");
  let sizes = { ...models[model.get("model")] };
  const choice = html("label", "mathllm-choice", controls);
  html("span", "", choice, "begin with");
  const select = html("select", "", choice);
  Object.keys(models).forEach((name) => (html("option", "", select, name).value = name));
  select.addEventListener("change", () => {
    model.set("model", select.value);
    model.save_changes();
    begin();
  });
  const inputs = SLIDERS.map(([key, name, min, max, step]) => {
    const label = html("label", "", controls);
    html("span", "", label, name);
    const input = html("input", "", label);
    Object.assign(input, { type: "range", min, max, step });
    const output = html("output", "", label);
    input.addEventListener("input", () => {
      const shared = sizes.key_width ? sizes.key_width / sizes.width : null; // the share of keys stays
      sizes[key] = Number(input.value);
      if (shared) sizes.key_width = Math.round(shared * sizes.width);
      update();
    });
    return { key, input, output };
  });
  const gated = html("label", "mathllm-choice", controls);
  html("span", "", gated, "gated network (SwiGLU)");
  const box = html("input", "", gated);
  box.type = "checkbox";
  box.addEventListener("change", () => {
    sizes.gated = box.checked;
    update();
  });

  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const rows = ["parameters in all", "rule 12 L D²"].map((name) => {
    const row = html("div", "mathllm-row", readout);
    html("span", "mathllm-name", row, name);
    return { value: html("strong", "mathllm-value", row), exact: html("span", "mathllm-formula", row) };
  });

  function begin() {
    sizes = { ...models[model.get("model")] };
    update();
  }

  function update() {
    const counts = parameterCount(sizes);
    const sum = total(counts);
    bars.forEach(({ bar, value }, i) => {
      const share = counts[names[i]] / sum;
      bar.setAttribute("width", share * (RIGHT - LEFT));
      value.textContent = share === 0 ? "–" : share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`;
    });
    inputs.forEach(({ key, input, output }) => {
      input.value = sizes[key];
      output.textContent = sizes[key];
    });
    box.checked = Boolean(sizes.gated);
    select.value = model.get("model");
    rows[0].value.textContent = inWords(sum);
    rows[0].exact.textContent = sum.toLocaleString("en-GB");
    rows[1].value.textContent = inWords(12 * sizes.layers * sizes.width ** 2);
    const parts = names.map((name, i) => `${NAMES[name]} ${bars[i].value.textContent}`).join(", ");
    picture.setAttribute("aria-label", `${inWords(sum)} parameters: ${parts}.`);
  }

  model.on("change:model", begin);
  begin();
  return () => model.off("change:model", begin);
}

export default { render };
