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

const UNIT = 44; // pixels for a length of one
const HALF = 180; // half the picture
const REACH = 5; // grid lines on each side of an axis
const ENTRIES = [["w11", "w₁₁"], ["w12", "w₁₂"], ["w21", "w₂₁"], ["w22", "w₂₂"]];
const TRAITS = ENTRIES.map(([trait]) => trait);
const PRESETS = [
  ["As it was", [[1, 0], [0, 1]]],
  ["Stretch", [[2, 0], [0, 0.5]]],
  ["Turn", [[0, -1], [1, 0]]],
  ["Shear", [[1, 1], [0, 1]]],
  ["Mirror", [[0, 1], [1, 0]]],
  ["Flatten", [[1, 0.5], [1, 0.5]]],
];

const place = ([x, y]) => [HALF + UNIT * x, HALF - UNIT * y];
const points = (list) => list.map(place).join(" ");
const NUMBERS = Array.from({ length: 2 * REACH + 1 }, (_, i) => i - REACH);
const LINES = NUMBERS.flatMap((k) => [[[k, -REACH], [k, REACH]], [[-REACH, k], [REACH, k]]]); // from edge to edge
const RIM = Array.from({ length: 72 }, (_, i) => [Math.cos((i * Math.PI) / 36), Math.sin((i * Math.PI) / 36)]);

function render({ model, el }) {
  const figure = new Figure("mathllm-grid-deformation", model, el);
  const picture = figure.picture(`0 0 ${2 * HALF} ${2 * HALF}`, "24rem");
  const before = svg("g", { class: "mathllm-grid" }, picture);
  for (const ends of LINES) svg("polyline", { points: points(ends) }, before);
  const after = svg("g", { class: "mathllm-axis", "stroke-opacity": 0.75 }, picture);
  const ellipse = svg("polygon", { class: "mathllm-c", "fill-opacity": 0.14, "stroke-width": 2 }, picture);
  const arrows = ["a", "b"].map((colour) => svg("g", { class: `mathllm-${colour}` }, picture));
  for (const [trait, name] of ENTRIES) figure.slider(name, [-2, 2, 0.1], trait, (x) => fixed(x, 2));
  figure.slider("how much of it", [0, 1, 0.05], "amount", (x) => fixed(x, 2));
  const rows = figure.rows(["circle's longest and shortest radius", "stretch of arrows that keep their line"]);
  for (const [name, entries] of PRESETS) {
    figure.button(name, () => {
      TRAITS.forEach((trait, i) => model.set(trait, entries.flat()[i]));
      model.set("amount", 1);
    });
  }
  figure.hider("numbers");

  function drawArrow(group, end, letter) {
    group.replaceChildren();
    if (Math.hypot(...end) >= 0.05) arrow(place([0, 0]), place(end), 3, group, letter);
  }

  function draw() {
    const [a, b, c, d, amount] = figure.get(...TRAITS, "amount");
    const W = blend([[a, b], [c, d]], amount);
    const moved = (list) => points(list.map((point) => apply(W, point)));
    after.replaceChildren();
    for (const ends of LINES) {
      const axis = ends[0].includes(0);
      svg("polyline", { points: moved(ends), "stroke-width": axis ? 1.8 : 0.8 }, after);
    }
    set(ellipse, { points: moved(RIM) });
    const units = [[1, 0], [0, 1]].map((unit) => apply(W, unit));
    units.forEach((end, i) => drawArrow(arrows[i], end, i + 1));

    const show = (values) => values.map((value) => fixed(value, 2));
    const real = [...new Set(show(eigenvalues(W)))].join(" and ");
    rows[0].value.textContent = figure.shown(show(singularValues(W)).join(" and "));
    rows[1].value.textContent = figure.shown(real || "no arrow keeps its line");
    const [one, two] = units.map((end) => show(end).join(", "));
    return (
      `A grid after the matrix: the first unit arrow ends at ${one}, the second at ${two}; ` +
      "a circle has become an ellipse."
    );
  }

  return figure.follow([...TRAITS, "amount"], draw);
}

export default { render };
