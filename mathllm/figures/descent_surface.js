// A loss surface from above, and the path that an optimiser takes on it.
import { circle, move, range, set, svg, widget } from "./elements.js";

const SURFACES = {
  "narrow valley": {
    start: [-2.2, 1],
    height: ([x, y]) => 0.5 * (x * x + 20 * y * y),
    gradient: ([x, y]) => [x, 20 * y],
  },
  "saddle point": {
    start: [-2.2, 0.02],
    height: ([x, y]) => 0.5 * (x * x - y * y) + 0.25 * y ** 4,
    gradient: ([x, y]) => [x, y ** 3 - y],
  },
  "two minima": {
    start: [2.2, 1.2],
    height: ([x, y]) => 0.5 * (x * x - 1) ** 2 + 0.3 * x + y * y,
    gradient: ([x, y]) => [2 * x * (x * x - 1) + 0.3, 2 * y],
  },
};
const FAR = 1e6; // a path that leads beyond has diverged

export const height = (surface, point) => SURFACES[surface].height(point);
export const gradient = (surface, point) => SURFACES[surface].gradient(point);

// All points that a descent visits, the start first; it ends early where it diverges.
export function path(surface, method, rate, beta, steps) {
  let point = SURFACES[surface].start;
  let [mean, square] = [[0, 0], [0, 0]];
  const visited = [point];
  for (let t = 1; t <= steps; t++) {
    const g = gradient(surface, point);
    if (method === "gradient descent") {
      point = point.map((x, i) => x - rate * g[i]);
    } else if (method === "momentum") {
      mean = mean.map((v, i) => beta * v + g[i]);
      point = point.map((x, i) => x - rate * mean[i]);
    } else {
      mean = mean.map((m, i) => beta * m + (1 - beta) * g[i]);
      square = square.map((v, i) => 0.999 * v + 0.001 * g[i] ** 2);
      const [corrected, root] = [1 / (1 - beta ** t), Math.sqrt(1 / (1 - 0.999 ** t))];
      point = point.map((x, i) => x - (rate * corrected * mean[i]) / (Math.sqrt(square[i]) * root + 1e-8));
    }
    visited.push(point);
    if (!point.every((x) => Math.abs(x) < FAR)) break;
  }
  return visited;
}

// The contour line at a height, as pieces that each cross one cell of a grid (marching squares).
export function contour(surface, level, [left, right], [low, high], cells = 60) {
  const [dx, dy] = [(right - left) / cells, (high - low) / cells];
  const pieces = [];
  for (const i of range(cells)) {
    for (const j of range(cells)) {
      const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]].map(([a, b]) => [left + a * dx, low + b * dy]);
      const above = corners.map((corner) => height(surface, corner) - level);
      const crossings = [];
      for (const k of range(4)) {
        const [p, q, a, b] = [corners[k], corners[(k + 1) % 4], above[k], above[(k + 1) % 4]];
        if (a > 0 !== b > 0) crossings.push(p.map((x, n) => x + (a / (a - b)) * (q[n] - x)));
      }
      for (let k = 0; k + 1 < crossings.length; k += 2) pieces.push([crossings[k], crossings[k + 1]]);
    }
  }
  return pieces;
}

const [WIDE, HIGH, UNIT] = [400, 260, 76];
const [ACROSS, UP] = [[-2.6, 2.6], [-1.7, 1.7]];
const at = ([x, y]) => [WIDE / 2 + UNIT * x, HIGH / 2 - UNIT * y].map((pixel) => Math.round(pixel * 10) / 10);
const decimal = (number) => {
  const size = Math.abs(number);
  if (size < 1e-9) return "0.000";
  return (size >= 1e4 || size < 1e-3 ? number.toExponential(1) : number.toFixed(3)).replaceAll("-", "−");
};

// The contour lines of the whole map, closer together below.
function contours(surface) {
  const grid = range(27).flatMap((i) => range(18).map((j) => [-2.6 + 0.2 * i, -1.7 + 0.2 * j]));
  const heights = grid.map((point) => height(surface, point));
  const [lowest, highest] = [Math.min(...heights), Math.max(...heights)];
  const levels = range(14).map((k) => lowest + ((k + 0.7) / 14) ** 2.5 * (highest - lowest));
  const pieces = levels.flatMap((level) => contour(surface, level, ACROSS, UP));
  return pieces.map(([p, q]) => `M${at(p).join(" ")}L${at(q).join(" ")}`).join("");
}

const TRAITS = ["surface", "method", "log_rate", "beta", "steps"];

export default widget("descent-surface", TRAITS, (figure) => {
  const picture = figure.picture(`0 0 ${WIDE} ${HIGH}`, "32rem");
  const lines = svg("path", { class: "mathllm-contours", fill: "none" }, picture);
  const track = svg("polyline", { class: "mathllm-path", fill: "none" }, picture);
  const dots = svg("g", { class: "mathllm-a" }, picture);
  const [start, end] = [circle(picture, [0, 0], 5, "mathllm-c"), circle(picture, [0, 0], 6, "mathllm-b")];
  figure.choice("surface", Object.keys(SURFACES), "surface");
  figure.choice("optimiser", ["gradient descent", "momentum", "Adam"], "method");
  figure.slider("learning rate η", [-3, 0, 0.05], "log_rate", (value) => (10 ** value).toPrecision(2));
  figure.slider("β (of Adam: β₁)", [0, 0.99, 0.01], "beta", (value) => value.toFixed(2));
  figure.slider("steps", [0, 100, 1], "steps");
  const [showPosition, showHeight] = figure.rows(["position", "height"]);
  let drawn = null;

  return (surface, method, logRate, beta, steps) => {
    if (drawn !== surface) set(lines, { d: contours(surface) });
    drawn = surface;
    const visited = path(surface, method, 10 ** logRate, beta, steps);
    const places = visited.filter((point) => point.every((x) => Math.abs(x) < 50)).map(at);
    set(track, { points: places.join(" ") });
    dots.replaceChildren();
    for (const place of places) circle(dots, place, 2.4);
    const last = visited.at(-1);
    move(start, at(visited[0]));
    move(end, at(last.map((x) => Math.max(-50, Math.min(50, x)))));

    const diverged = !last.every((x) => Math.abs(x) < FAR);
    const [from, to] = [visited[0], last].map((point) => decimal(height(surface, point)));
    const position = `${diverged ? "diverged" : `(${last.map(decimal).join(", ")})`} after ${visited.length - 1} steps`;
    const heights = `${from} at the start, ${diverged ? "above every bound" : to} now`;
    showPosition(position);
    showHeight(heights);
    const course = `path of ${method} with learning rate ${(10 ** logRate).toPrecision(2)}: ${position}`;
    return `Contour map, ${surface}; ${course}; height ${heights}.`;
  };
});
