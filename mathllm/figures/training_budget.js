// What a training run costs, from its sizes alone.
import { inWords, sum, widget } from "./elements.js";

// Bytes on each of n devices with ZeRO at this stage: weights, master copy, Adam's moments, gradients.
export function zeroMemory(parameters, n, stage) {
  const parts = [3, 1, 1, 2].map((first) => (stage >= first ? n : 1));
  return [2, 4, 8, 4].map((bytes, i) => (parameters * bytes) / parts[i]);
}

export const flops = (parameters, tokens) => 6 * parameters * tokens;

// Days on devices of this peak (operations per second), of which a fraction is reached.
export function days(operations, devices, peak = 312e12, utilization = 0.4) {
  return operations / (devices * peak * utilization) / 86400;
}

// The fraction of the time for which the devices of a pipeline are idle.
export const bubble = (stages, microbatches) => (stages - 1) / (stages + microbatches - 1);

// The Chinchilla law, E + A/N^α + B/D^β, with the rounded constants of Hoffmann et al. 2022.
export function loss(parameters, tokens) {
  return 1.69 + 406.4 / parameters ** 0.34 + 410.7 / tokens ** 0.28;
}

const PARTS = ["weights", "master copy", "moments", "gradients", "total"];
const SLIDERS = [
  ["parameters", "parameters N", [7, 12, 0.05], (x) => inWords(10 ** x)],
  ["tokens", "tokens D", [9, 14, 0.05], (x) => inWords(10 ** x)],
  ["devices", "devices", [0, 13, 1], (x) => String(2 ** x)],
  ["zero", "ZeRO stage", [0, 3, 1]],
  ["stages", "pipeline stages P", [1, 32, 1]],
  ["microbatches", "microbatches M", [1, 128, 1]],
];
const ROWS = [
  "operations 6ND", "days at 312 · 10¹² per second, 40 % utilisation", "tokens per parameter",
  "loss by the Chinchilla law, rounded exponents", "pipeline bubble",
];
const threeDigits = (x) => Number(x.toPrecision(3)).toLocaleString("en-GB");

export default widget("training-budget", SLIDERS.map(([trait]) => trait), (figure) => {
  const bars = figure.bars(PARTS, [92, 310, 28], { looks: { 4: "mathllm-b" } });
  for (const [trait, name, limits, words] of SLIDERS) figure.slider(name, limits, trait, words);
  const rows = figure.rows(ROWS);

  return (logN, logD, logn, stage, stages, microbatches) => {
    const [N, D, n] = [10 ** logN, 10 ** logD, 2 ** logn];
    const parts = zeroMemory(N, n, stage);
    const memory = [...parts, sum(parts)];
    const sizes = memory.map((bytes) => `${threeDigits(bytes / 1e9)} GB`);
    memory.forEach((bytes, i) => bars[i](bytes / (18 * N), sizes[i]));
    const C = flops(N, D);
    [
      C.toExponential(2).replace("e+", " · 10^"), inWords(days(C, n)), threeDigits(D / N),
      `${loss(N, D).toFixed(3)} nats`, `${(100 * bubble(stages, microbatches)).toFixed(1)} % of the time`,
    ].forEach((text, i) => rows[i](text));
    return `Memory on each device: ${PARTS.map((part, i) => `${part} ${sizes[i]}`).join(", ")}.`;
  };
});
