// A matrix, rebuilt from its largest singular values: each scales the product of one column and one row.
import { label, norm, range, rect, set, sum, widget } from "./elements.js";

export function approximate(columns, sizes, rows, rank) {
  const entry = (i, j) => sum(range(rank).map((k) => sizes[k] * columns[k][i] * rows[k][j]));
  return range(columns[0].length).map((i) => range(rows[0].length).map((j) => entry(i, j)));
}

// The error of the approximation in the Frobenius norm, as a fraction of the norm of the matrix.
export const relativeError = (sizes, rank) => norm(sizes.slice(rank)) / (norm(sizes) || 1);

// How many numbers the two low-rank factors hold.
export const factorSize = (m, n, rank) => rank * (m + n);

const WIDTH = 360;
const SPECTRUM = 56; // pixels for the bars below the picture

function drawDots(picture, m, n) {
  const side = WIDTH / n;
  rect(picture, [0, 0], [WIDTH, m * side], "mathllm-track");
  const look = { fill: "currentColor", stroke: "none" };
  const dot = (i, j) => rect(picture, [j * side, i * side], [side + 0.3, side + 0.3], look);
  return range(m).map((i) => range(n).map((j) => dot(i, j)));
}

function drawSpectrum(picture, sizes, foot) {
  const step = WIDTH / sizes.length;
  label(picture, [WIDTH / 2, foot + 16], "singular values, the largest first", "middle");
  return sizes.map((value, k) => {
    const height = Math.max((SPECTRUM * value) / (sizes[0] || 1), 0.5);
    return rect(picture, [(k + 0.1) * step, foot - height], [0.8 * step, height], { stroke: "none" });
  });
}

export default widget("rank-slider", ["rank"], (figure) => {
  const [columns, sizes, rows] = figure.get("columns", "sizes", "rows");
  const [m, n] = [columns[0].length, rows[0].length];
  const foot = (m * WIDTH) / n + SPECTRUM + 6;
  const picture = figure.picture(`0 0 ${WIDTH} ${foot + 20}`, "28rem");
  const dots = drawDots(picture, m, n);
  const bars = drawSpectrum(picture, sizes, foot);
  figure.slider("rank: singular values kept", [0, sizes.length, 1], "rank");
  const [showNumbers, showError] = figure.rows(["numbers in the low-rank factors", "relative error (Frobenius norm)"]);

  return (rank) => {
    const ink = (entry) => ({ "fill-opacity": Math.min(Math.max(entry, 0), 1).toFixed(3) });
    approximate(columns, sizes, rows, rank).forEach((row, i) => row.forEach((entry, j) => set(dots[i][j], ink(entry))));
    bars.forEach((bar, k) => set(bar, { class: k < rank ? "mathllm-a" : "mathllm-track" }));
    const percent = 100 * relativeError(sizes, rank);
    showNumbers(`${factorSize(m, n, rank)} in place of ${m * n}`);
    showError(`${percent.toFixed(1)} %`);
    const values = `${rank} of ${sizes.length} singular values`;
    return `A picture of ${m} by ${n} dots from ${values}; the relative error is ${percent.toFixed(0)} percent.`;
  };
});
