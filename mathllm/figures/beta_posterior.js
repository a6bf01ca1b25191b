// A Beta prior for the probability of heads. Throws make it a Beta posterior: each head adds one to a, each tail to b.
import { axes, label, line, range, set, svg, widget } from "./elements.js";

// ln (n − 1)! for whole n ≥ 1, which is ln Γ(n).
export function logGamma(n) {
  let sum = 0;
  for (let i = 2; i < n; i += 1) sum += Math.log(i);
  return sum;
}

export function betaDensity(theta, a, b) {
  const scale = logGamma(a + b) - logGamma(a) - logGamma(b);
  return Math.exp(scale + (a - 1) * Math.log(theta) + (b - 1) * Math.log1p(-theta));
}

export const update = (a, b, heads, tails) => [a + heads, b + tails];

// Mean, standard deviation and highest point of a Beta density; a flat one has no highest point.
export function summary(a, b) {
  const mean = a / (a + b);
  const deviation = Math.sqrt((mean * (1 - mean)) / (a + b + 1));
  return { mean, deviation, mode: a + b > 2 ? (a - 1) / (a + b - 2) : null };
}

const BOX = [34, 386, 12, 170]; // left, right, top, bottom of the curves
const STEPS = 200;
const SLIDERS = [
  ["prior_a", "prior a (heads + 1)", 1], ["prior_b", "prior b (tails + 1)", 1],
  ["heads", "heads thrown", 0], ["tails", "tails thrown", 0],
];
const CURVES = [["mathllm-b", "prior", "6 4"], ["mathllm-c", "likelihood", "2 3"], ["mathllm-a", "posterior", ""]];

// Points of a density, at the middles of STEPS equal parts of 0 … 1.
function curve([a, b]) {
  return range(STEPS).map((i) => [(i + 0.5) / STEPS, betaDensity((i + 0.5) / STEPS, a, b)]);
}

export default widget("beta-posterior", SLIDERS.map(([trait]) => trait), (figure) => {
  const picture = figure.picture("0 0 400 212", "32rem");
  const theta = { low: 0, high: 1, ticks: [0, 0.25, 0.5, 0.75, 1], title: "θ, the probability of heads" };
  const place = axes(picture, BOX, theta, { low: 0, high: 1, ticks: [0], numbers: [], title: "density" });
  const legend = svg("g", {}, picture);
  const lines = CURVES.map(([colour, name, dashes], i) => {
    const [look, y] = [{ class: `${colour} mathllm-curve`, "stroke-dasharray": dashes }, 20 + 16 * i];
    line(legend, [0, y], [24, y], look);
    label(legend, [30, y + 4], name);
    return svg("polyline", look, picture);
  });
  for (const [trait, name, min] of SLIDERS) figure.slider(name, [min, 50, 1], trait);
  const estimates = ["maximum likelihood", "maximum a posteriori (MAP)", "mean of the posterior"];
  const [likeliest, map, average] = figure.rows(estimates);

  return (a, b, heads, tails) => {
    const [afterA, afterB] = update(a, b, heads, tails);
    // the likelihood scaled to area 1: the posterior of a flat prior
    const curves = [[a, b], [heads + 1, tails + 1], [afterA, afterB]].map(curve);
    const highest = Math.max(2, ...curves.flat().map(([, height]) => height));
    const points = curves.map((curve) => curve.map(([t, height]) => place(t, height / highest)).join(" "));
    lines.forEach((line, i) => set(line, { points: points[i] }));
    const { mean, deviation, mode } = summary(afterA, afterB);
    set(legend, { transform: `translate(${mean > 0.5 ? 42 : 276} 0)` });

    const [throws, all] = [heads + tails, afterA + afterB];
    if (throws) likeliest(`= ${(heads / throws).toFixed(3)}`, `${heads} / ${throws}`);
    else likeliest("", "no throws yet");
    if (mode === null) map("", "flat: none");
    else map(`= ${mode.toFixed(3)}`, `${afterA - 1} / ${all - 2}`);
    const [m, s] = [mean, deviation].map((x) => x.toFixed(3));
    average(`= ${m} ± ${s}`, `${afterA} / ${all}`);
    const posterior = `Beta(${afterA}, ${afterB}), with mean ${m} and standard deviation ${s}`;
    return `Prior Beta(${a}, ${b}); after ${heads} heads and ${tails} tails the posterior is ${posterior}.`;
  };
});
