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
const SLIDERS = [
  ["prior_a", "prior a (heads + 1)", 1],
  ["prior_b", "prior b (tails + 1)", 1],
  ["heads", "heads thrown", 0],
  ["tails", "tails thrown", 0],
];
const CURVES = [
  ["mathllm-b", "prior", "6 4"],
  ["mathllm-c", "data alone", "2 3"],
  ["mathllm-a", "posterior", ""],
];

// Points of a density, at the middles of STEPS equal parts of 0 … 1.
function curve(a, b) {
  return Array.from({ length: STEPS }, (_, i) => (i + 0.5) / STEPS).map((t) => [t, betaDensity(t, a, b)]);
}

function render({ model, el }) {
  const root = frame("mathllm-beta-belief", el);
  const picture = svg("svg", { viewBox: "0 0 400 212", class: "mathllm-plot", role: "img" }, root);
  const x = (t) => LEFT + t * (RIGHT - LEFT);
  for (const t of [0, 0.25, 0.5, 0.75, 1]) {
    svg("line", { x1: x(t), x2: x(t), y1: TOP, y2: BOTTOM, class: "mathllm-grid" }, picture);
    svg("text", { x: x(t), y: BOTTOM + 17, "text-anchor": "middle" }, picture).textContent = String(t);
  }
  svg("line", { x1: LEFT, x2: RIGHT, y1: BOTTOM, y2: BOTTOM, class: "mathllm-axis" }, picture);
  svg("text", { x: (LEFT + RIGHT) / 2, y: BOTTOM + 36, "text-anchor": "middle" }, picture).textContent =
    "θ, the probability of heads";
  const down = svg("text", { x: 14, y: (TOP + BOTTOM) / 2, "text-anchor": "middle" }, picture);
  down.setAttribute("transform", `rotate(-90 14 ${(TOP + BOTTOM) / 2})`);
  down.textContent = "density";
  const lines = CURVES.map(([colour, , dashes]) =>
    svg("polyline", { class: colour, style: "fill: none", "stroke-width": 2.5, "stroke-dasharray": dashes }, picture),
  );
  const legend = svg("g", {}, picture);
  CURVES.forEach(([colour, name, dashes], i) => {
    const y = TOP + 8 + 16 * i;
    svg("line", {
      x1: 0, x2: 24, y1: y, y2: y, class: colour, "stroke-width": 2.5, "stroke-dasharray": dashes,
    }, legend);
    svg("text", { x: 30, y: y + 4 }, legend).textContent = name;
  });

  const controls = html("div", "mathllm-controls", root);
  const inputs = SLIDERS.map(([trait, name, min]) => {
    const label = html("label", "", controls);
    html("span", "", label, name);
    const input = html("input", "", label);
    Object.assign(input, { type: "range", min, max: 50, step: 1 });
    const output = html("output", "", label);
    input.addEventListener("input", () => {
      model.set(trait, Number(input.value));
      model.save_changes();
      draw();
    });
    return { trait, input, output };
  });

  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const rows = ["maximum likelihood", "most plausible (MAP)", "mean of the posterior"].map((name) => {
    const row = html("div", "mathllm-row", readout);
    html("span", "mathllm-name", row, name);
    return { formula: html("span", "mathllm-formula", row), value: html("strong", "mathllm-value", row) };
  });

  function draw() {
    const [a, b, heads, tails] = SLIDERS.map(([trait]) => model.get(trait));
    const [afterA, afterB] = update(a, b, heads, tails);
    inputs.forEach(({ trait, input, output }) => {
      input.value = model.get(trait);
      output.textContent = String(model.get(trait));
    });
    // the likelihood as a density: what a flat prior would make of the same throws
    const curves = [curve(a, b), curve(heads + 1, tails + 1), curve(afterA, afterB)];
    const highest = Math.max(2, ...curves.flat().map(([, height]) => height));
    lines.forEach((line, i) => {
      const points = curves[i].map(([t, height]) => `${x(t)},${BOTTOM - (height / highest) * (BOTTOM - TOP)}`);
      line.setAttribute("points", points.join(" "));
    });
    const after = summary(afterA, afterB);
    legend.setAttribute("transform", `translate(${after.mean > 0.5 ? LEFT + 8 : RIGHT - 110} 0)`);

    const throws = heads + tails;
    rows[0].formula.textContent = throws ? `${heads} / ${throws}` : "nothing thrown yet";
    rows[0].value.textContent = throws ? `= ${(heads / throws).toFixed(3)}` : "";
    rows[1].formula.textContent = after.mode === null ? "flat: none" : `${afterA - 1} / ${afterA + afterB - 2}`;
    rows[1].value.textContent = after.mode === null ? "" : `= ${after.mode.toFixed(3)}`;
    rows[2].formula.textContent = `${afterA} / ${afterA + afterB}`;
    rows[2].value.textContent = `= ${after.mean.toFixed(3)} ± ${after.deviation.toFixed(3)}`;
    picture.setAttribute(
      "aria-label",
      `Prior Beta(${a}, ${b}); after ${heads} heads and ${tails} tails the posterior is Beta(${afterA}, ${afterB}), ` +
        `with mean ${after.mean.toFixed(3)} and standard deviation ${after.deviation.toFixed(3)}.`,
    );
  }

  SLIDERS.forEach(([trait]) => model.on(`change:${trait}`, draw));
  draw();
  return () => SLIDERS.forEach(([trait]) => model.off(`change:${trait}`, draw));
}

export default { render };
