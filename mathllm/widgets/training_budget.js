// The bill of a training run, from its sizes alone.

// Bytes on each of n devices that share the work by ZeRO: weights, master copy, moments, gradients.
export function zeroMemory(parameters, n, stage) {
  const share = [3, 1, 1, 2].map((first) => (stage >= first ? n : 1));
  return [2, 4, 8, 4].map((bytes, i) => (parameters * bytes) / share[i]);
}

export function flops(parameters, tokens) {
  return 6 * parameters * tokens;
}

// Days on devices of a peak (operations per second), of which a share is reached.
export function days(operations, devices, peak = 312e12, utilization = 0.4) {
  return operations / (devices * peak * utilization) / 86400;
}

export function bubble(stages, microbatches) {
  return (stages - 1) / (stages + microbatches - 1);
}

// The Chinchilla law, E + A/N^α + B/D^β, with the constants of Hoffmann et al. 2022.
export function loss(parameters, tokens) {
  return 1.69 + 406.4 / parameters ** 0.34 + 410.7 / tokens ** 0.28;
}

const PARTS = ["weights", "master copy", "moments", "gradients", "in all"];
const SLIDERS = [
  ["parameters", "parameters N", [7, 12, 0.05], (x) => inWords(10 ** x)],
  ["tokens", "tokens D", [9, 14, 0.05], (x) => inWords(10 ** x)],
  ["devices", "devices", [0, 13, 1], (x) => String(2 ** x)],
  ["zero", "ZeRO stage", [0, 3, 1]],
  ["stages", "pipeline stages S", [1, 32, 1]],
  ["microbatches", "microbatches M", [1, 128, 1]],
];
const TRAITS = SLIDERS.map(([trait]) => trait);
const ROWS = [
  "operations 6ND", "days at 312 · 10^12 per second, 40 % used", "tokens per parameter", "loss by the law",
  "waiting in the pipeline",
];
const threeDigits = (x) => Number(x.toPrecision(3)).toLocaleString("en-GB");

function render({ model, el }) {
  const figure = new Figure("mathllm-training-budget", model, el);
  const bars = figure.bars(PARTS, 92, 310, 28);
  set(bars.at(-1).bar, { class: "mathllm-b" });
  for (const [trait, name, range, words] of SLIDERS) figure.slider(name, range, trait, words);
  const rows = figure.rows(ROWS);

  function draw() {
    const [logN, logD, logn, zero, stages, microbatches] = figure.get(...TRAITS);
    const [N, D, n] = [10 ** logN, 10 ** logD, 2 ** logn];
    const memory = zeroMemory(N, n, zero);
    const parts = [...memory, sum(memory)].map((bytes, i) => {
      bars[i].show(bytes / (18 * N), `${threeDigits(bytes / 1e9)} GB`);
      return `${PARTS[i]} ${threeDigits(bytes / 1e9)} GB`;
    });
    const C = flops(N, D);
    const waiting = 100 * bubble(stages, microbatches);
    [
      C.toExponential(2).replace("e+", " · 10^"), inWords(days(C, n)), threeDigits(D / N),
      `${loss(N, D).toFixed(3)} nats`, `${waiting.toFixed(1)} % of the time`,
    ].forEach((text, i) => (rows[i].value.textContent = text));
    return `Memory on each device: ${parts.join(", ")}.`;
  }

  return figure.follow(TRAITS, draw);
}

export default { render };
