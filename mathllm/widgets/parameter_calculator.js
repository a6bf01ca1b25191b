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
  return sum(Object.values(counts));
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

function render({ model, el }) {
  const figure = new Figure("mathllm-parameter-calculator", model, el);
  const [parts, models] = [Object.keys(NAMES), model.get("models")];
  const bars = figure.bars(Object.values(NAMES), 116, 324, 30);
  let [begun, sizes] = ["", {}];
  // Keys that are shared by heads stay shared by as many.
  function resize(key, value) {
    const share = sizes.key_width / sizes.width;
    sizes[key] = value;
    if (share) sizes.key_width = Math.round(share * sizes.width);
  }
  figure.choice("begin with", Object.keys(models), "model");
  for (const [key, name, min, max, step] of SLIDERS) {
    figure.slider(name, [min, max, step], { read: () => sizes[key], write: (value) => resize(key, value) });
  }
  const gated = { read: () => Boolean(sizes.gated), write: (value) => (sizes.gated = value) };
  figure.choice("network", [[false, "two matrices"], [true, "gated: three (SwiGLU)"]], gated);
  const rows = figure.rows(["parameters in all", "rule 12 L D²"]);

  function draw() {
    if (begun !== model.get("model")) [begun, sizes] = [model.get("model"), { ...models[model.get("model")] }];
    const counts = parameterCount(sizes);
    const all = total(counts);
    const words = parts.map((part, i) => {
      const share = counts[part] / all;
      const percent = share === 0 ? "–" : share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`;
      bars[i].show(share, percent);
      return `${NAMES[part]} ${percent}`;
    });
    rows[0].formula.textContent = `${all.toLocaleString("en-GB")} ≈`;
    rows[0].value.textContent = inWords(all);
    rows[1].value.textContent = inWords(12 * sizes.layers * sizes.width ** 2);
    return `${inWords(all)} parameters: ${words.join(", ")}.`;
  }

  return figure.follow(["model"], draw);
}

export default { render };
