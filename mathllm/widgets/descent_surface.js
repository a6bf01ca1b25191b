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
const short = (number) => {
  const size = Math.abs(number);
  if (size < 1e-9) return "0.000";
  return (size >= 1e4 || size < 1e-3 ? number.toExponential(1) : number.toFixed(3)).replaceAll("-", "−");
};

function render({ model, el }) {
  const root = frame("mathllm-descent-surface", el);
  const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "mathllm-plot", role: "img" }, root);
  const lines = svg("path", { class: "mathllm-contours", fill: "none" }, picture);
  const way = svg("path", { class: "mathllm-way", fill: "none" }, picture);
  const dots = svg("g", { class: "mathllm-a" }, picture);
  const start = svg("circle", { r: 5, class: "mathllm-c" }, picture);
  const end = svg("circle", { r: 6, class: "mathllm-b" }, picture);

  const controls = html("div", "mathllm-controls", root);
  function set(trait, value) {
    model.set(trait, value);
    model.save_changes();
    update();
  }
  function choice(trait, name, options) {
    const label = html("label", "mathllm-choice", controls);
    html("span", "", label, name);
    const select = html("select", "", label);
    for (const [value, text] of options) html("option", "", select, text).value = value;
    select.addEventListener("change", () => set(trait, select.value));
    return () => (select.value = model.get(trait));
  }
  function slider(trait, name, min, max, step, text) {
    const label = html("label", "", controls);
    html("span", "", label, name);
    const input = html("input", "", label);
    Object.assign(input, { type: "range", min, max, step });
    const output = html("output", "", label);
    input.addEventListener("input", () => set(trait, Number(input.value)));
    return () => {
      input.value = model.get(trait);
      output.textContent = text(model.get(trait));
      input.setAttribute("aria-valuetext", output.textContent);
    };
  }
  const names = Object.entries(SURFACES).map(([key, { name }]) => [key, name]);
  const methods = [["plain", "plain descent"], ["momentum", "momentum"], ["Adam", "Adam"]];
  const refresh = [
    choice("surface", "landscape", names),
    choice("method", "optimiser", methods),
    slider("log_rate", "learning rate η", -3, 0, 0.05, (value) => (10 ** value).toPrecision(2)),
    slider("beta", "memory β", 0, 0.99, 0.01, (value) => value.toFixed(2)),
    slider("steps", "steps", 0, 100, 1, String),
  ];
  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const rows = ["place", "height"].map((name) => {
    const row = html("div", "mathllm-row", readout);
    html("span", "mathllm-name", row, name);
    return html("strong", "mathllm-value", row);
  });

  let drawn = null;
  function drawSurface(surface) {
    if (drawn === surface) return;
    drawn = surface;
    const heights = [];
    for (let x = -2.6; x <= 2.6; x += 0.2) for (let y = -1.7; y <= 1.7; y += 0.2) heights.push(height(surface, [x, y]));
    const [lowest, highest] = [Math.min(...heights), Math.max(...heights)];
    const levels = Array.from({ length: 14 }, (_, k) => lowest + ((k + 0.7) / 14) ** 2.5 * (highest - lowest));
    const pieces = levels.flatMap((level) => contour(surface, level, ACROSS, UP));
    lines.setAttribute("d", pieces.map(([p, q]) => `M${at(p).join(" ")}L${at(q).join(" ")}`).join(""));
  }

  function update() {
    const [surface, method, beta, steps] = ["surface", "method", "beta", "steps"].map((trait) => model.get(trait));
    const rate = 10 ** model.get("log_rate");
    refresh.forEach((show) => show());
    drawSurface(surface);
    const visited = path(surface, method, rate, beta, steps);
    const last = visited.at(-1);
    const away = !last.every((x) => Math.abs(x) < FAR);
    const seen = visited.filter((place) => place.every((x) => Math.abs(x) < 50));
    way.setAttribute("d", `M ${seen.map((place) => at(place).join(" ")).join(" L ")}`);
    dots.replaceChildren();
    for (const place of seen) {
      const [cx, cy] = at(place);
      svg("circle", { cx, cy, r: 2.4 }, dots);
    }
    [[start, visited[0]], [end, last]].forEach(([dot, place]) => {
      const [cx, cy] = at(place.map((x) => Math.max(-50, Math.min(50, x))));
      dot.setAttribute("cx", cx);
      dot.setAttribute("cy", cy);
    });
    const count = visited.length - 1;
    rows[0].textContent = away ? `ran away after ${count} steps` : `(${last.map(short).join(", ")}) after ${count} steps`;
    const [from, to] = [height(surface, visited[0]), height(surface, last)];
    rows[1].textContent = `${short(from)} at the start, ${away ? "beyond all bounds" : short(to)} now`;
    picture.setAttribute(
      "aria-label",
      `Contour map of a ${SURFACES[surface].name}. Path of ${method} with learning rate ${rate.toPrecision(2)}: ` +
        `${rows[0].textContent}; height ${rows[1].textContent}.`,
    );
  }

  const traits = ["surface", "method", "log_rate", "beta", "steps"].map((name) => `change:${name}`);
  traits.forEach((name) => model.on(name, update));
  update();
  return () => traits.forEach((name) => model.off(name, update));
}

export default { render };
