// The slope of the line through two points of a curve, and what it tends to when the points meet.
import { axes, circle, fixed, move, range, set, svg, widget } from "./elements.js";

const CURVES = {
  square: { name: "x²", value: (x) => x * x, slope: (x) => 2 * x },
  cube: { name: "x³", value: (x) => x ** 3, slope: (x) => 3 * x * x },
  exponential: { name: "eˣ", value: Math.exp, slope: Math.exp },
  kink: { name: "max(0, x)", value: (x) => Math.max(0, x), slope: (x) => (x === 0 ? null : Number(x > 0)) },
};

export const value = (curve, x) => CURVES[curve].value(x);

// The derivative; null where there is none.
export const slope = (curve, x) => CURVES[curve].slope(x);

// [f(x + h) − f(x)] / h; null for h = 0, where there is only one point.
export const secantSlope = (curve, x, h) => (h === 0 ? null : (value(curve, x + h) - value(curve, x)) / h);

// Three decimals, and words where there is no number.
const format = (number, nothing) => (number === null ? nothing : fixed(number, 3));

const X = { low: -2.6, high: 2.6, ticks: [-2, -1, 0, 1, 2] };
const Y = { low: -2.2, high: 5.2, ticks: range(8).map((i) => i - 2) };
const POINTS = range(209).map((i) => X.low + 0.025 * i);

export default widget("secant-tangent", ["curve", "x", "h"], (figure) => {
  const picture = figure.picture("0 0 400 260");
  const place = axes(picture, [28, 396, 6, 236], X, Y);
  // An inner picture cuts the lines off at its edges.
  const inside = svg("svg", { x: 28, y: 6, width: 368, height: 230, viewBox: "28 6 368 230" }, picture);
  const curve = svg("polyline", { class: "mathllm-arc", fill: "none", "stroke-width": 2.5 }, inside);
  const tangent = svg("line", { class: "mathllm-b", "stroke-dasharray": "6 4", "stroke-width": 2 }, inside);
  const secant = svg("line", { class: "mathllm-a", "stroke-width": 2 }, inside);
  const dots = ["mathllm-b", "mathllm-a"].map((look) => circle(picture, [0, 0], 5, look));
  figure.choice("curve f(x)", Object.entries(CURVES).map(([key, { name }]) => [key, name]), "curve");
  figure.slider("point x", [-1.5, 1.5, 0.1], "x", (x) => fixed(x, 1));
  figure.slider("step h", [-1, 1, 0.01], "h", (h) => fixed(h, 2));
  const readings = ["slope of the blue secant", "derivative at x: slope of the dashed tangent"];
  const [showRatio, showLimit] = figure.rows(readings);

  // The straight line through a point of the curve with this slope.
  function through(line, x, y, steepness) {
    const [[x1, y1], [x2, y2]] = [-3, 3].map((at) => place(at, y + steepness * (at - x)));
    set(line, { x1, y1, x2, y2, visibility: steepness === null ? "hidden" : "visible" });
  }

  return (kind, x, h) => {
    set(curve, { points: POINTS.map((at) => place(at, value(kind, at))).join(" ") });
    const [limit, ratio] = [slope(kind, x), secantSlope(kind, x, h)];
    through(tangent, x, value(kind, x), limit);
    through(secant, x, value(kind, x), ratio);
    [x, x + h].forEach((at, i) => move(dots[i], place(at, value(kind, at))));
    showRatio(format(ratio, "no line: h = 0 leaves one point"));
    showLimit(format(limit, "none: the curve has a corner"));
    const points = `The curve ${CURVES[kind].name} with its points at x = ${fixed(x, 3)} and ${fixed(x + h, 3)}`;
    return `${points}. Slope of the secant: ${format(ratio, "none")}; of the tangent: ${format(limit, "none")}.`;
  };
});
