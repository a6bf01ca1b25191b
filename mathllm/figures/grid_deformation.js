// A 2 × 2 matrix moves the plane: straight lines stay straight, the origin stays put, a circle becomes an ellipse.
import { arrow, dot, fixed, norm, range, set, svg, widget } from "./elements.js";

// W x, for W = [[w11, w12], [w21, w22]].
export const apply = (W, x) => W.map((row) => dot(row, x));

// Part of the way from the identity to W.
export function blend(W, amount) {
  return W.map((row, i) => row.map((entry, j) => (1 - amount) * (i === j ? 1 : 0) + amount * entry));
}

// Singular values: the longest and the shortest radius of the ellipse that a circle of radius one becomes.
export function singularValues([[a, b], [c, d]]) {
  const [rotation, reflection] = [Math.hypot(a + d, c - b), Math.hypot(a - d, c + b)];
  return [(rotation + reflection) / 2, Math.abs(rotation - reflection) / 2];
}

// The real eigenvalues, the larger modulus first; none for a matrix that rotates every arrow.
export function eigenvalues([[a, b], [c, d]]) {
  const square = ((a - d) / 2) ** 2 + b * c;
  if (square < 0) return [];
  const [mean, root] = [(a + d) / 2, Math.sqrt(square)];
  return [mean + root, mean - root].sort((x, y) => Math.abs(y) - Math.abs(x));
}

const UNIT = 44; // pixels for a length of one
const HALF = 180; // half the picture
const REACH = 5; // grid lines on each side of an axis
const TRAITS = ["w11", "w12", "w21", "w22"];
const PRESETS = [
  ["Identity", [1, 0, 0, 1]], ["Scale", [2, 0, 0, 0.5]], ["Rotate", [0, -1, 1, 0]], ["Shear", [1, 1, 0, 1]],
  ["Reflect", [0, 1, 1, 0]], ["Flatten", [1, 0.5, 1, 0.5]],
];

const place = ([x, y]) => [HALF + UNIT * x, HALF - UNIT * y];
const NUMBERS = range(2 * REACH + 1).map((i) => i - REACH);
const LINES = NUMBERS.flatMap((k) => [[[k, -REACH], [k, REACH]], [[-REACH, k], [REACH, k]]]); // from edge to edge
const RIM = range(72).map((i) => [Math.cos((i * Math.PI) / 36), Math.sin((i * Math.PI) / 36)]);

export default widget("grid-deformation", [...TRAITS, "amount"], (figure) => {
  const picture = figure.picture(`0 0 ${2 * HALF} ${2 * HALF}`, "24rem");
  const before = svg("g", { class: "mathllm-grid" }, picture);
  for (const ends of LINES) svg("polyline", { points: ends.map(place).join(" ") }, before);
  const after = svg("g", { class: "mathllm-axis", "stroke-opacity": 0.75 }, picture);
  const ellipse = svg("polygon", { class: "mathllm-c", "fill-opacity": 0.14, "stroke-width": 2 }, picture);
  const arrows = ["a", "b"].map((colour) => svg("g", { class: `mathllm-${colour}` }, picture));
  const names = ["w₁₁", "w₁₂", "w₂₁", "w₂₂"];
  TRAITS.forEach((trait, i) => figure.slider(names[i], [-2, 2, 0.1], trait, (x) => fixed(x, 2)));
  figure.slider("from identity to W", [0, 1, 0.05], "amount", (x) => fixed(x, 2));
  const readings = ["singular values (radii of the ellipse)", "real eigenvalues (of arrows that keep their line)"];
  const [showSingular, showEigen] = figure.rows(readings);
  for (const [name, [w11, w12, w21, w22]] of PRESETS) {
    figure.button(name, () => figure.assign({ w11, w12, w21, w22, amount: 1 }));
  }
  figure.hider("numbers");

  return (a, b, c, d, amount) => {
    const W = blend([[a, b], [c, d]], amount);
    const moved = (list) => list.map((point) => place(apply(W, point))).join(" ");
    after.replaceChildren();
    for (const ends of LINES) {
      svg("polyline", { points: moved(ends), "stroke-width": ends[0].includes(0) ? 1.8 : 0.8 }, after);
    }
    set(ellipse, { points: moved(RIM) });
    const units = [[1, 0], [0, 1]].map((unit) => apply(W, unit));
    units.forEach((end, i) => {
      arrows[i].replaceChildren();
      if (norm(end) >= 0.05) arrow(place([0, 0]), place(end), 3, arrows[i], i + 1);
    });

    const show = (values) => values.map((value) => fixed(value, 2));
    showSingular(figure.shown(show(singularValues(W)).join(" and ")));
    showEigen(figure.shown([...new Set(show(eigenvalues(W)))].join(" and ") || "none: no arrow keeps its line"));
    const [one, two] = units.map((end) => show(end).join(", "));
    const ends = `the first basis vector ends at ${one}, the second at ${two}`;
    return `A grid after the matrix: ${ends}; a circle has become an ellipse.`;
  };
});
