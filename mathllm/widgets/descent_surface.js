// A landscape from above, and the way an optimiser takes through it.

const SURFACES = {
  valley: {
    name: "narrow valley",
    start: [-2.2, 1],
    height: ([x, y]) => 0.5 * (x * x + 20 * y * y),
    slope: ([x, y]) => [x, 20 * y],
  },
  pass: {
    name: "mountain pass",
    start: [-2.2, 0.02],
    height: ([x, y]) => 0.5 * (x * x - y * y) + 0.25 * y ** 4,
    slope: ([x, y]) => [x, y ** 3 - y],
  },
  "two bowls": {
    name: "two bowls",
    start: [2.2, 1.2],
    height: ([x, y]) => 0.5 * (x * x - 1) ** 2 + 0.3 * x + y * y,
    slope: ([x, y]) => [2 * x * (x * x - 1) + 0.3, 2 * y],
  },
};
const FAR = 1e6; // beyond, a descent has run away

export function height(surface, place) {
  return SURFACES[surface].height(place);
}

export function gradient(surface, place) {
  return SURFACES[surface].slope(place);
}

// All places a descent visits, the start first; it ends early where it runs away.
export function path(surface, method, rate, beta, steps) {
  let place = SURFACES[surface].start;
  let [mean, square] = [[0, 0], [0, 0]];
  const visited = [place];
  for (let t = 1; t <= steps; t++) {
    const slope = gradient(surface, place);
    if (method === "plain") {
      place = place.map((x, i) => x - rate * slope[i]);
    } else if (method === "momentum") {
      mean = mean.map((v, i) => beta * v + slope[i]);
      place = place.map((x, i) => x - rate * mean[i]);
    } else {
      mean = mean.map((m, i) => beta * m + (1 - beta) * slope[i]);
      square = square.map((v, i) => 0.999 * v + 0.001 * slope[i] ** 2);
      const [corrected, root] = [1 / (1 - beta ** t), Math.sqrt(1 / (1 - 0.999 ** t))];
      place = place.map((x, i) => x - (rate * corrected * mean[i]) / (Math.sqrt(square[i]) * root + 1e-8));
    }
    visited.push(place);
    if (!place.every((x) => Math.abs(x) < FAR)) break;
  }
  return visited;
}

// The line on which the surface has this height, as pieces: each crosses one cell of a grid (marching squares).
export function contour(surface, level, [left, right], [low, high], cells = 60) {
  const [dx, dy] = [(right - left) / cells, (high - low) / cells];
  const above = (i, j) => height(surface, [left + i * dx, low + j * dy]) - level;
  const pieces = [];
  for (let i = 0; i < cells; i++) {
    for (let j = 0; j < cells; j++) {
      const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
      const values = corners.map(([a, b]) => above(a, b));
      const crossings = [];
      for (let k = 0; k < 4; k++) {
        const [p, q, a, b] = [corners[k], corners[(k + 1) % 4], values[k], values[(k + 1) % 4]];
        if (a > 0 === b > 0) continue;
        const share = a / (a - b);
        crossings.push([left + dx * (p[0] + share * (q[0] - p[0])), low + dy * (p[1] + share * (q[1] - p[1]))]);
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
  const heights = [];
  for (let x = -2.6; x <= 2.6; x += 0.2) for (let y = -1.7; y <= 1.7; y += 0.2) heights.push(height(surface, [x, y]));
  const [lowest, highest] = [Math.min(...heights), Math.max(...heights)];
  const levels = Array.from({ length: 14 }, (_, k) => lowest + ((k + 0.7) / 14) ** 2.5 * (highest - lowest));
  const pieces = levels.flatMap((level) => contour(surface, level, ACROSS, UP));
  return pieces.map(([p, q]) => `M${at(p).join(" ")}L${at(q).join(" ")}`).join("");
}

function render({ model, el }) {
  const figure = new Figure("mathllm-descent-surface", model, el);
  const picture = figure.picture(`0 0 ${WIDE} ${HIGH}`, "32rem");
  const lines = svg("path", { class: "mathllm-contours", fill: "none" }, picture);
  const way = svg("path", { class: "mathllm-way", fill: "none" }, picture);
  const dots = svg("g", { class: "mathllm-a" }, picture);
  const start = svg("circle", { r: 5, class: "mathllm-c" }, picture);
  const end = svg("circle", { r: 6, class: "mathllm-b" }, picture);
  figure.choice("landscape", Object.entries(SURFACES).map(([key, { name }]) => [key, name]), "surface");
  figure.choice("optimiser", [["plain", "plain descent"], "momentum", "Adam"], "method");
  figure.slider("learning rate η", [-3, 0, 0.05], "log_rate", (value) => (10 ** value).toPrecision(2));
  figure.slider("memory β", [0, 0.99, 0.01], "beta", (value) => value.toFixed(2));
  figure.slider("steps", [0, 100, 1], "steps");
  const rows = figure.rows(["place", "height"]);
  let drawn = null;

  function drawWay(visited) {
    const seen = visited.filter((place) => place.every((x) => Math.abs(x) < 50));
    set(way, { d: `M ${seen.map((place) => at(place).join(" ")).join(" L ")}` });
    dots.replaceChildren();
    for (const [cx, cy] of seen.map(at)) svg("circle", { cx, cy, r: 2.4 }, dots);
    [[start, visited[0]], [end, visited.at(-1)]].forEach(([dot, place]) => {
      const [cx, cy] = at(place.map((x) => Math.max(-50, Math.min(50, x))));
      set(dot, { cx, cy });
    });
  }

  function draw() {
    const [surface, method, beta, steps] = figure.get("surface", "method", "beta", "steps");
    const rate = 10 ** model.get("log_rate");
    if (drawn !== surface) set(lines, { d: contours(surface) });
    drawn = surface;
    const visited = path(surface, method, rate, beta, steps);
    drawWay(visited);
    const [last, count] = [visited.at(-1), visited.length - 1];
    const away = !last.every((x) => Math.abs(x) < FAR);
    const [from, to] = [visited[0], last].map((place) => decimal(height(surface, place)));
    const [place, heights] = rows.map(({ value }) => value);
    place.textContent = `${away ? "ran away" : `(${last.map(decimal).join(", ")})`} after ${count} steps`;
    heights.textContent = `${from} at the start, ${away ? "beyond all bounds" : to} now`;
    const map = `Contour map of a ${SURFACES[surface].name}`;
    const course = `path of ${method} with learning rate ${rate.toPrecision(2)}: ${place.textContent}`;
    return `${map}; ${course}; height ${heights.textContent}.`;
  }

  return figure.follow(["surface", "method", "log_rate", "beta", "steps"], draw);
}

export default { render };
