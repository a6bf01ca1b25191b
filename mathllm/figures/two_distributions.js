// Data have the distribution p, a model predicts q: the cross-entropy is the entropy of p plus the divergence from q.
import { klDivergence, label, rect, set, sum, widget } from "./elements.js";

export function normalized(weights) {
  const total = sum(weights);
  return weights.map((w) => w / total);
}

// The mean over p of −log q, in units of ln(base); infinite where q is zero and p is not.
export function crossEntropy(p, q, base = Math.E) {
  return sum(p.map((pi, i) => (pi > 0 ? -pi * Math.log(q[i]) : 0))) / Math.log(base);
}

export const entropy = (p, base = Math.E) => crossEntropy(p, p, base);

// base to the power of H: the same number whatever the base, if it is the base of H.
export const perplexity = (H, base) => Math.exp(H * Math.log(base));

// Weights with the i-th changed, unless it is the last one above zero and would become zero.
export function changed(weights, i, value) {
  const next = weights.with(i, value);
  return next.some((w) => w > 0) ? next : weights;
}

const format = (value) => (Number.isFinite(value) ? value.toFixed(3) : "∞");
const BASES = { nats: Math.E, bits: 2 };
const [LEFT, RIGHT, ROW] = [84, 338, 22];
const FULL = 3; // nats that fit into a bar

// The bar of H(p, q): H(p) and behind it KL(p‖q). Returns what draws it and says it in words.
function drawSum(picture, y, [p, q], look) {
  const [place, size] = [[LEFT, y + 22], [RIGHT - LEFT, 20]];
  label(picture, [LEFT - 8, y + 37], `H(${p}, ${q}) =`, "end");
  rect(picture, place, size, "mathllm-track");
  const [own, more] = [look, "mathllm-c"].map((colour) => rect(picture, place, size, colour));
  const value = label(picture, [RIGHT + 8, y + 37], "");
  const caption = label(picture, [LEFT, y + 17], "");
  return (first, second, unit) => {
    const [H, KL] = [entropy(first, BASES[unit]), klDivergence(first, second, BASES[unit])];
    const width = (amount) => Math.min((amount * Math.log(BASES[unit])) / FULL, 1) * (RIGHT - LEFT);
    set(own, { width: width(H) });
    set(more, { x: LEFT + width(H), width: Math.min(width(KL), RIGHT - LEFT - width(H)) });
    value.textContent = format(H + KL);
    caption.textContent = `H(${p}) ${format(H)} + KL(${p}‖${q}) ${format(KL)}  ${unit}`;
    return caption.textContent;
  };
}

export default widget("two-distributions", ["p", "q", "unit"], (figure, model) => {
  const labels = model.get("labels");
  const [names, looks] = [labels.flatMap((word) => [`p: ${word}`, `q: ${word}`]), ["mathllm-a", "mathllm-b"]];
  const bars = figure.bars(names, [LEFT, RIGHT, ROW], { looks: names.map((_, i) => looks[i % 2]), below: 104 });
  const sums = ["pq", "qp"].map((pair, k) => drawSum(figure.plot, ROW * names.length + 6 + 44 * k, pair, looks[k]));
  for (const [trait, name] of [["p", "true p"], ["q", "predicted q"]]) {
    labels.forEach((word, i) => {
      const read = () => model.get(trait)[i];
      const write = (value) => model.set(trait, changed(model.get(trait), i, value));
      figure.slider(`${name}: “${word}”`, [0, 10, 0.1], { read, write }, (w) => w.toFixed(1));
    });
  }
  const readout = figure.readout();
  const certain = (i) => labels.map((_, j) => (i === j ? 10 : 0));
  labels.forEach((word, i) => figure.button(`“${word}” came`, () => model.set("p", certain(i))));
  figure.button("Swap p and q", () => figure.assign({ p: model.get("q"), q: model.get("p") }));
  figure.button("Nats or bits", () => model.set("unit", model.get("unit") === "nats" ? "bits" : "nats"));

  return (weightsP, weightsQ, unit) => {
    const [p, q] = [normalized(weightsP), normalized(weightsQ)];
    labels.forEach((_, i) => [p, q].forEach((all, k) => bars[2 * i + k](all[i], all[i].toFixed(3))));
    const captions = [sums[0](p, q, unit), sums[1](q, p, unit)];
    const H = crossEntropy(p, q, BASES[unit]);
    const power = `${unit === "bits" ? "2" : "e"}^${format(H)} = ${perplexity(H, BASES[unit]).toFixed(2)}`;
    readout.textContent = `Perplexity of q on data from p: ${Number.isFinite(H) ? power : "∞"}`;
    const parts = labels.map((label, i) => `${label} ${p[i].toFixed(2)} and ${q[i].toFixed(2)}`);
    return `p and q: ${parts.join(", ")}. ${captions.join("; ")}.`;
  };
});
