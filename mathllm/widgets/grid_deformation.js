// A 2 × 2 matrix moves the plane: straight lines stay straight, the origin stays put, a circle becomes an ellipse.

// W x, for W = [[w11, w12], [w21, w22]].
export function apply(W, x) {
  return W.map((row) => row[0] * x[0] + row[1] * x[1]);
}

// Part of the way from the plane as it was to what W makes of it.
export function blend(W, amount) {
  return W.map((row, i) => row.map((entry, j) => (1 - amount) * (i === j ? 1 : 0) + amount * entry));
}

// The longest and the shortest radius of the ellipse that a circle of radius one becomes.
export function singularValues([[a, b], [c, d]]) {
  const turning = Math.hypot(a + d, c - b);
  const mirroring = Math.hypot(a - d, c + b);
  return [(turning + mirroring) / 2, Math.abs(turning - mirroring) / 2];
}

// The real eigenvalues, the larger modulus first; none for a matrix that turns every arrow.
export function eigenvalues([[a, b], [c, d]]) {
  const square = ((a - d) / 2) ** 2 + b * c;
  if (square < 0) return [];
  const [mean, root] = [(a + d) / 2, Math.sqrt(square)];
  const sorted = [mean + root, mean - root];
  return Math.abs(sorted[0]) >= Math.abs(sorted[1]) ? sorted : sorted.reverse();
}

// Two decimals, a true minus sign, and never "−0.00".
export function format(value) {
  const text = value.toFixed(2);
  return (Number(text) === 0 ? "0.00" : text).replace("-", "−");
}

const UNIT = 44; // pixels for a length of one
const HALF = 180; // half the picture
const REACH = 5; // grid lines on each side
const ENTRIES = [["w11", "w₁₁"], ["w12", "w₁₂"], ["w21", "w₂₁"], ["w22", "w₂₂"]];
const PRESETS = [
  ["As it was", [[1, 0], [0, 1]]],
  ["Stretch", [[2, 0], [0, 0.5]]],
  ["Turn", [[0, -1], [1, 0]]],
  ["Shear", [[1, 1], [0, 1]]],
  ["Mirror", [[0, 1], [1, 0]]],
  ["Flatten", [[1, 0.5], [1, 0.5]]],
];

function place([x, y]) {
  return `${HALF + UNIT * x},${HALF - UNIT * y}`;
}

function drawArrow(group, [x, y], letter) {
  group.replaceChildren();
  const length = Math.hypot(x, y);
  if (length < 0.05) return;
  const [u, v] = [x / length, y / length];
  const foot = [x - 0.2 * u, y - 0.2 * v];
  svg("polyline", { points: `${place([0, 0])} ${place(foot)}`, "stroke-width": 3, fill: "none" }, group);
  const wings = [0.09, -0.09].map((side) => place([foot[0] - side * v, foot[1] + side * u]));
  svg("polygon", { points: `${place([x, y])} ${wings.join(" ")}`, stroke: "none" }, group);
  const [tx, ty] = place([x + 0.28 * u, y + 0.28 * v]).split(",").map(Number);
  const label = svg("text", { x: tx, y: ty + 5, "text-anchor": "middle", stroke: "none" }, group);
  label.textContent = letter;
}

function render({ model, el }) {
  const root = frame("mathllm-grid-deformation", el);
  const size = 2 * HALF;
  const picture = svg("svg", { viewBox: `0 0 ${size} ${size}`, class: "mathllm-plot", role: "img" }, root);
  picture.style.maxWidth = "24rem";
  picture.style.margin = "0 auto";
  const before = svg("g", { class: "mathllm-grid" }, picture);
  const after = svg("g", { class: "mathllm-axis", "stroke-opacity": 0.75 }, picture);
  const ellipse = svg("polygon", { class: "mathllm-c", "fill-opacity": 0.14, "stroke-width": 2 }, picture);
  const first = svg("g", { class: "mathllm-a" }, picture);
  const second = svg("g", { class: "mathllm-b" }, picture);
  for (let k = -REACH; k <= REACH; k++) {
    svg("polyline", { points: `${place([k, -REACH])} ${place([k, REACH])}` }, before);
    svg("polyline", { points: `${place([-REACH, k])} ${place([REACH, k])}` }, before);
  }

  const controls = html("div", "mathllm-controls", root);
  const sliders = [...ENTRIES.map(([trait, name]) => [trait, name, -2, 2, 0.1]), ["amount", "how much of it", 0, 1, 0.05]];
  const inputs = sliders.map(([trait, name, min, max, step]) => {
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
    return { trait, input, output };
  });

  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const rows = ["circle's longest and shortest radius", "stretch of arrows that keep their line"].map((name) => {
    const row = html("div", "mathllm-row", readout);
    html("span", "mathllm-name", row, name);
    return html("strong", "mathllm-value", row);
  });

  const buttons = html("div", "mathllm-buttons", root);
  for (const [name, entries] of PRESETS) {
    const button = html("button", "mathllm-button", buttons, name);
    button.type = "button";
    button.addEventListener("click", () => {
      ENTRIES.forEach(([trait], i) => model.set(trait, entries.flat()[i]));
      model.set("amount", 1);
      model.save_changes();
      update();
    });
  }
  let hidden = false;
  const hide = html("button", "mathllm-button", buttons);
  hide.type = "button";
  hide.addEventListener("click", () => {
    hidden = !hidden;
    update();
  });

  function update() {
    const [a, b, c, d] = ENTRIES.map(([trait]) => model.get(trait));
    const W = blend([[a, b], [c, d]], model.get("amount"));
    inputs.forEach(({ trait, input, output }) => {
      input.value = model.get(trait);
      output.textContent = format(model.get(trait));
    });
    after.replaceChildren();
    for (let k = -REACH; k <= REACH; k++) {
      for (const ends of [[[k, -REACH], [k, REACH]], [[-REACH, k], [REACH, k]]]) {
        const points = ends.map((point) => place(apply(W, point))).join(" ");
        svg("polyline", { points, "stroke-width": k === 0 ? 1.8 : 0.8 }, after);
      }
    }
    const rim = Array.from({ length: 72 }, (_, i) => [Math.cos((i * Math.PI) / 36), Math.sin((i * Math.PI) / 36)]);
    ellipse.setAttribute("points", rim.map((point) => place(apply(W, point))).join(" "));
    drawArrow(first, apply(W, [1, 0]), "1");
    drawArrow(second, apply(W, [0, 1]), "2");

    const [long, short] = singularValues(W);
    const real = eigenvalues(W).map(format);
    rows[0].textContent = hidden ? "?" : `${format(long)} and ${format(short)}`;
    rows[1].textContent = hidden ? "?" : real.length ? [...new Set(real)].join(" and ") : "no arrow keeps its line";
    hide.textContent = hidden ? "Show the numbers" : "Hide the numbers and predict";
    hide.setAttribute("aria-pressed", String(hidden));
    const [one, two] = [apply(W, [1, 0]), apply(W, [0, 1])].map((point) => point.map(format).join(", "));
    picture.setAttribute(
      "aria-label",
      `A grid after the matrix: the first unit arrow ends at ${one}, the second at ${two}; a circle has become an ellipse.`,
    );
  }

  const traits = sliders.map(([trait]) => trait);
  traits.forEach((trait) => model.on(`change:${trait}`, update));
  update();
  return () => traits.forEach((trait) => model.off(`change:${trait}`, update));
}

export default { render };
