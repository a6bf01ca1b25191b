// Temperature first, then top-k, then top-p: what generate() does before it samples.
import { html, softmax, sum, widget } from "./elements.js";

// The size of the nucleus: the smallest number of the sorted probabilities whose sum reaches p.
export function nucleusSize(sorted, p) {
  const reached = sorted.findIndex((_, i) => sum(sorted.slice(0, i + 1)) >= p * (1 - 1e-9));
  return reached < 0 ? sorted.length : reached + 1;
}

// The distribution that is sampled from, for logits in falling order.
export function filtered(logits, temperature, k, p) {
  const best = softmax(logits.slice(0, k), temperature);
  const kept = best.slice(0, nucleusSize(best, p));
  const mass = sum(kept);
  return logits.map((_, i) => (i < kept.length ? kept[i] / mass : 0));
}

export default widget("sampling-filters", ["temperature", "top_k", "top_p"], (figure) => {
  const [tokens, logits] = figure.get("tokens", "logits");
  html("div", "mathllm-name", figure.root, "pale: before the filters; full: after them");
  const bars = figure.bars(tokens, [96, 330, 22], { before: true });
  figure.slider("temperature τ", [0.1, 3, 0.1], "temperature", (tau) => tau.toFixed(1));
  figure.slider("top-k", [1, tokens.length, 1], "top_k");
  figure.slider("top-p", [0.05, 1, 0.05], "top_p", (p) => p.toFixed(2));
  const readout = figure.readout();

  return (temperature, k, p) => {
    const before = softmax(logits, temperature);
    const after = filtered(logits, temperature, k, p);
    const most = Math.max(...after);
    bars.forEach((show, i) => show(after[i] / most, after[i] ? after[i].toFixed(3) : "–", before[i] / most));
    const count = after.filter((p) => p > 0).length;
    const mass = sum(before.slice(0, count)).toFixed(3);
    readout.textContent = `${count} of ${tokens.length} tokens stay; before the filters their probability was ${mass}.`;
    const best = tokens.slice(0, Math.min(count, 5)).map((token, i) => `${token} ${after[i].toFixed(3)}`);
    return `${readout.textContent} Most probable: ${best.join(", ")}.`;
  };
});
