// The parameters of a transformer by part, from its sizes alone.
import { inWords, sum, widget } from "./elements.js";

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

const NAMES = ["embedding", "positions", "attention", "feed-forward", "norms", "unembedding"];
const SLIDERS = [
  ["width", "width D", 64, 12288, 64], ["layers", "blocks L", 1, 96, 1],
  ["hidden", "hidden width F", 64, 49152, 64], ["vocabulary", "vocabulary V", 256, 131072, 1],
];

function percent(share) {
  if (share === 0) return "–";
  return share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`;
}

export default widget("parameter-calculator", ["model"], (figure) => {
  const models = figure.model.get("models");
  const bars = figure.bars(NAMES, [116, 324, 30]);
  let [begun, sizes] = ["", {}];
  // Keys that several heads share stay shared by as many heads.
  function resize(key, value) {
    const share = sizes.key_width / sizes.width;
    sizes[key] = value;
    if (share) sizes.key_width = Math.round(share * sizes.width);
  }
  figure.choice("start from", Object.keys(models), "model");
  for (const [key, name, ...limits] of SLIDERS) {
    figure.slider(name, limits, { read: () => sizes[key], write: (value) => resize(key, value) });
  }
  const gated = { read: () => Boolean(sizes.gated), write: (value) => (sizes.gated = value) };
  figure.choice("feed-forward", [[false, "two matrices"], [true, "gated: three (SwiGLU)"]], gated);
  const [showAll, showRule] = figure.rows(["parameters in total", "approximation 12 L D²"]);

  return (model) => {
    if (begun !== model) [begun, sizes] = [model, { ...models[model] }];
    const counts = Object.values(parameterCount(sizes));
    const all = sum(counts);
    counts.forEach((count, i) => bars[i](count / all, percent(count / all)));
    showAll(inWords(all), `${all.toLocaleString("en-GB")} ≈`);
    showRule(inWords(12 * sizes.layers * sizes.width ** 2));
    const words = counts.map((count, i) => `${NAMES[i]} ${percent(count / all)}`);
    return `${inWords(all)} parameters: ${words.join(", ")}.`;
  };
});
