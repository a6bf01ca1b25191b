// The slope of the line through two points of a curve, and what it tends to when the points meet.

const CURVES = {
  square: { name: "x²", value: (x) => x * x, slope: (x) => 2 * x },
  cube: { name: "x³", value: (x) => x ** 3, slope: (x) => 3 * x * x },
  exponential: { name: "eˣ", value: Math.exp, slope: Math.exp },
  kink: { name: "max(0, x)", value: (x) => Math.max(0, x), slope: (x) => (x === 0 ? null : Number(x > 0)) },
};

export function value(curve, x) {
  return CURVES[curve].value(x);
}

// The slope of the tangent; null where there is none.
export function slope(curve, x) {
  return CURVES[curve].slope(x);
}

// [f(x + h) − f(x)] / h; null for h = 0, where there is only one point.
export function secantSlope(curve, x, h) {
  return h === 0 ? null : (value(curve, x + h) - value(curve, x)) / h;
}

// Three decimals, a true minus sign, never "−0.000", and words where there is no number.
export function format(number, nothing = "no line") {
  if (number === null) return nothing;
  const text = number.toFixed(3);
  return (Number(text) === 0 ? "0.000" : text).replace("-", "−");
}

const [WIDE, HIGH, UNIT_X, UNIT_Y] = [400, 260, 72, 30]; // the picture, and the pixels of one unit
const place = (x, y) => [WIDE / 2 + UNIT_X * x, 170 - UNIT_Y * y];
const SLIDERS = [
  ["x", "place x", -1.5, 1.5, 0.1],
  ["h", "step h", -1, 1, 0.01],
];

function render({ model, el }) {
  const root = frame("mathllm-secant-tangent", el);
  const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "mathllm-plot", role: "img" }, root);
  for (let y = -2; y <= 5; y++) {
    const [, height] = place(0, y);
    svg("line", { x1: 24, y1: height, x2: WIDE, y2: height, class: y ? "mathllm-grid" : "mathllm-axis" }, picture);
  }
  for (let x = -2; x <= 2; x++) {
    const [across, height] = place(x, 0);
    svg("line", { x1: across, y1: height - 3, x2: across, y2: height + 3, class: "mathllm-axis" }, picture);
  }
  const curve = svg("path", { class: "mathllm-arc", fill: "none", "stroke-width": 2.5 }, picture);
  const tangent = svg("line", { class: "mathllm-b", "stroke-dasharray": "6 4", "stroke-width": 2 }, picture);
  const secant = svg("line", { class: "mathllm-a", "stroke-width": 2 }, picture);
  const first = svg("circle", { r: 5, class: "mathllm-b" }, picture);
  const second = svg("circle", { r: 5, class: "mathllm-a" }, picture);
  function mark(number, x, y, anchor) {
    svg("text", { x, y, "text-anchor": anchor }, picture).textContent = String(number).replace("-", "−");
  }
  for (let y = -2; y <= 5; y++) mark(y, 18, place(0, y)[1] + 4, "end");
  for (let x = -2; x <= 2; x++) mark(x, place(x, 0)[0], HIGH - 4, "middle");

  const controls = html("div", "mathllm-controls", root);
  const choice = html("label", "mathllm-choice", controls);
  html("span", "", choice, "curve f(x)");
  const select = html("select", "", choice);
  for (const [key, { name }] of Object.entries(CURVES)) html("option", "", select, name).value = key;
  select.addEventListener("change", () => {
    model.set("curve", select.value);
    model.save_changes();
    update();
  });
  const inputs = SLIDERS.map(([trait, name, min, max, step]) => {
    const label = html("label", "", controls);
    html("span", "", label, name);
    const input = html("input", "", label);
    Object.assign(input, { type: "range", min, max, step });
    const output = html("output", "", label);
    input.addEventListener("input", () => {
      model.set(trait, Number(input.value));
      model.save_changes();
      update();
    });
    return { trait, input, output, digits: step === 0.1 ? 1 : 2 };
  });
  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const rows = ["slope of the blue line through both points", "slope of the dashed tangent at x"].map((name) => {
    const row = html("div", "mathllm-row", readout);
    html("span", "mathllm-name", row, name);
    return html("strong", "mathllm-value", row);
  });

  // A straight line through (x, y) of this slope, drawn from edge to edge.
  function draw(line, x, y, steepness) {
    line.setAttribute("visibility", steepness === null ? "hidden" : "visible");
    const [x1, y1] = place(-3, y + (steepness ?? 0) * (-3 - x));
    const [x2, y2] = place(3, y + (steepness ?? 0) * (3 - x));
    for (const [key, number] of Object.entries({ x1, y1, x2, y2 })) line.setAttribute(key, number);
  }

  function update() {
    const [kind, x, h] = ["curve", "x", "h"].map((trait) => model.get(trait));
    select.value = kind;
    inputs.forEach(({ trait, input, output, digits }) => {
      input.value = model.get(trait);
      output.textContent = model.get(trait).toFixed(digits).replace("-", "−");
    });
    const points = Array.from({ length: 221 }, (_, i) => -2.75 + 0.025 * i);
    curve.setAttribute("d", `M ${points.map((at) => place(at, value(kind, at)).join(" ")).join(" L ")}`);
    const [limit, line] = [slope(kind, x), secantSlope(kind, x, h)];
    draw(tangent, x, value(kind, x), limit);
    draw(secant, x, value(kind, x), line);
    [[first, x], [second, x + h]].forEach(([dot, at]) => {
      const [cx, cy] = place(at, value(kind, at));
      dot.setAttribute("cx", cx);
      dot.setAttribute("cy", cy);
    });
    rows[0].textContent = format(line, "no line: h = 0 leaves one point");
    rows[1].textContent = format(limit, "none: the curve has a corner");
    picture.setAttribute(
      "aria-label",
      `The curve ${CURVES[kind].name} with its points at x = ${format(x)} and ${format(x + h)}. ` +
        `Slope of the line through them: ${format(line, "none")}; slope of the tangent: ${format(limit, "none")}.`,
    );
  }

  const traits = ["change:curve", "change:x", "change:h"];
  traits.forEach((name) => model.on(name, update));
  update();
  return () => traits.forEach((name) => model.off(name, update));
}

export default { render };
