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

// Three decimals, and words where there is no number.
function format(number, nothing) {
  return number === null ? nothing : fixed(number, 3);
}

const [WIDE, HIGH, UNIT_X, UNIT_Y] = [400, 260, 72, 30]; // the picture, and the pixels of one unit
const place = (x, y) => [WIDE / 2 + UNIT_X * x, 170 - UNIT_Y * y];

// Grid and axes; their numbers are drawn last, over the curves.
function drawAxes(picture) {
  for (let y = -2; y <= 5; y++) {
    const [, height] = place(0, y);
    svg("line", { x1: 24, y1: height, x2: WIDE, y2: height, class: y ? "mathllm-grid" : "mathllm-axis" }, picture);
  }
  for (let x = -2; x <= 2; x++) {
    const [across, height] = place(x, 0);
    svg("line", { x1: across, y1: height - 3, x2: across, y2: height + 3, class: "mathllm-axis" }, picture);
  }
  const [curves, numbers] = [svg("g", {}, picture), svg("g", {}, picture)];
  for (let y = -2; y <= 5; y++) {
    svg("text", { x: 18, y: place(0, y)[1] + 4, "text-anchor": "end" }, numbers, fixed(y, 0));
  }
  for (let x = -2; x <= 2; x++) {
    svg("text", { x: place(x, 0)[0], y: HIGH - 4, "text-anchor": "middle" }, numbers, fixed(x, 0));
  }
  return curves;
}

// A straight line through (x, y) of this slope, drawn from edge to edge.
function drawLine(line, x, y, steepness) {
  const [x1, y1] = place(-3, y + (steepness ?? 0) * (-3 - x));
  const [x2, y2] = place(3, y + (steepness ?? 0) * (3 - x));
  set(line, { x1, y1, x2, y2, visibility: steepness === null ? "hidden" : "visible" });
}

function render({ model, el }) {
  const figure = new Figure("mathllm-secant-tangent", model, el);
  const picture = drawAxes(figure.picture(`0 0 ${WIDE} ${HIGH}`));
  const curve = svg("path", { class: "mathllm-arc", fill: "none", "stroke-width": 2.5 }, picture);
  const tangent = svg("line", { class: "mathllm-b", "stroke-dasharray": "6 4", "stroke-width": 2 }, picture);
  const secant = svg("line", { class: "mathllm-a", "stroke-width": 2 }, picture);
  const dots = ["b", "a"].map((colour) => svg("circle", { r: 5, class: `mathllm-${colour}` }, picture));
  figure.choice("curve f(x)", Object.entries(CURVES).map(([key, { name }]) => [key, name]), "curve");
  figure.slider("place x", [-1.5, 1.5, 0.1], "x", (x) => fixed(x, 1));
  figure.slider("step h", [-1, 1, 0.01], "h", (h) => fixed(h, 2));
  const rows = figure.rows(["slope of the blue line through both points", "slope of the dashed tangent at x"]);

  function draw() {
    const [kind, x, h] = figure.get("curve", "x", "h");
    const points = Array.from({ length: 221 }, (_, i) => -2.75 + 0.025 * i);
    set(curve, { d: `M ${points.map((at) => place(at, value(kind, at)).join(" ")).join(" L ")}` });
    const [limit, ratio] = [slope(kind, x), secantSlope(kind, x, h)];
    drawLine(tangent, x, value(kind, x), limit);
    drawLine(secant, x, value(kind, x), ratio);
    [x, x + h].forEach((at, i) => {
      const [cx, cy] = place(at, value(kind, at));
      set(dots[i], { cx, cy });
    });
    rows[0].value.textContent = format(ratio, "no line: h = 0 leaves one point");
    rows[1].value.textContent = format(limit, "none: the curve has a corner");
    return (
      `The curve ${CURVES[kind].name} with its points at x = ${fixed(x, 3)} and ${fixed(x + h, 3)}. ` +
      `Slope of the line through them: ${format(ratio, "none")}; slope of the tangent: ${format(limit, "none")}.`
    );
  }

  return figure.follow(["curve", "x", "h"], draw);
}

export default { render };
