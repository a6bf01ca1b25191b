// A belief about a coin is a Beta density. Throws turn it into another one: each head adds one to a, each tail to b.

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

export function update(a, b, heads, tails) {
  return [a + heads, b + tails];
}

// Mean, standard deviation and highest point of a Beta density; a flat one has no highest point.
export function summary(a, b) {
  const mean = a / (a + b);
  const deviation = Math.sqrt((mean * (1 - mean)) / (a + b + 1));
  return { mean, deviation, mode: a + b > 2 ? (a - 1) / (a + b - 2) : null };
}

const [LEFT, RIGHT, TOP, BOTTOM] = [34, 386, 12, 170];
const STEPS = 200;
const x = (t) => LEFT + t * (RIGHT - LEFT);
const SLIDERS = [
  ["prior_a", "prior a (heads + 1)", 1],
  ["prior_b", "prior b (tails + 1)", 1],
  ["heads", "heads thrown", 0],
  ["tails", "tails thrown", 0],
];
const TRAITS = SLIDERS.map(([trait]) => trait);
const CURVES = [
  ["mathllm-b", "prior", "6 4"],
  ["mathllm-c", "data alone", "2 3"],
  ["mathllm-a", "posterior", ""],
];

// Points of a density, at the middles of STEPS equal parts of 0 … 1.
function curve(a, b) {
  return Array.from({ length: STEPS }, (_, i) => (i + 0.5) / STEPS).map((t) => [t, betaDensity(t, a, b)]);
}

function drawAxes(picture) {
  for (const t of [0, 0.25, 0.5, 0.75, 1]) {
    svg("line", { x1: x(t), x2: x(t), y1: TOP, y2: BOTTOM, class: "mathllm-grid" }, picture);
    svg("text", { x: x(t), y: BOTTOM + 17, "text-anchor": "middle" }, picture, t);
  }
  svg("line", { x1: LEFT, x2: RIGHT, y1: BOTTOM, y2: BOTTOM, class: "mathllm-axis" }, picture);
  svg("text", { x: x(0.5), y: BOTTOM + 36, "text-anchor": "middle" }, picture, "θ, the probability of heads");
  const side = { transform: `translate(14 ${(TOP + BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" };
  svg("text", side, picture, "density");
}

function render({ model, el }) {
  const figure = new Figure("mathllm-beta-belief", model, el);
  const picture = figure.picture("0 0 400 212", "32rem");
  drawAxes(picture);
  const looks = CURVES.map(([colour, , dashes]) => {
    return { class: colour, "stroke-width": 2.5, "stroke-dasharray": dashes };
  });
  const lines = looks.map((look) => svg("polyline", { ...look, style: "fill: none" }, picture));
  const legend = svg("g", {}, picture);
  CURVES.forEach(([, name], i) => {
    const y = TOP + 8 + 16 * i;
    svg("line", { x1: 0, x2: 24, y1: y, y2: y, ...looks[i] }, legend);
    svg("text", { x: 30, y: y + 4 }, legend, name);
  });
  for (const [trait, name, min] of SLIDERS) figure.slider(name, [min, 50, 1], trait);
  const rows = figure.rows(["maximum likelihood", "most plausible (MAP)", "mean of the posterior"]);
  function fill({ formula, value }, numbers, result, otherwise) {
    formula.textContent = result === null ? otherwise : numbers;
    value.textContent = result === null ? "" : `= ${result}`;
  }

  function draw() {
    const [a, b, heads, tails] = figure.get(...TRAITS);
    const [afterA, afterB] = update(a, b, heads, tails);
    // the likelihood as a density: what a flat prior would make of the same throws
    const curves = [curve(a, b), curve(heads + 1, tails + 1), curve(afterA, afterB)];
    const highest = Math.max(2, ...curves.flat().map(([, height]) => height));
    lines.forEach((line, i) => {
      const points = curves[i].map(([t, height]) => `${x(t)},${BOTTOM - (height / highest) * (BOTTOM - TOP)}`);
      set(line, { points: points.join(" ") });
    });
    const { mean, deviation, mode } = summary(afterA, afterB);
    set(legend, { transform: `translate(${mean > 0.5 ? LEFT + 8 : RIGHT - 110} 0)` });

    const [throws, all] = [heads + tails, afterA + afterB];
    const share = throws ? (heads / throws).toFixed(3) : null;
    const [average, spread] = [mean, deviation].map((x) => x.toFixed(3));
    fill(rows[0], `${heads} / ${throws}`, share, "nothing thrown yet");
    fill(rows[1], `${afterA - 1} / ${all - 2}`, mode === null ? null : mode.toFixed(3), "flat: none");
    fill(rows[2], `${afterA} / ${all}`, `${average} ± ${spread}`);
    const posterior = `Beta(${afterA}, ${afterB}), with mean ${average} and standard deviation ${spread}`;
    return `Prior Beta(${a}, ${b}); after ${heads} heads and ${tails} tails the posterior is ${posterior}.`;
  }

  return figure.follow(TRAITS, draw);
}

export default { render };
