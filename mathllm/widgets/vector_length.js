// An arrow in the plane and the right triangle under it. Its length is Pythagoras' theorem, and so is every norm.

export function norm(v) {
  return Math.hypot(...v);
}

// A point of the drawing, in grid units, snapped to halves and kept on the plane.
export function snap(v) {
  return v.map((component) => Math.min(LIMIT, Math.max(-LIMIT, Math.round(2 * component) / 2)) + 0);
}

// "√(3² + (−4)²) = √25"
export function formula(v) {
  const squares = v.map((component) => (component < 0 ? `(${short(component, 3)})²` : `${short(component, 3)}²`));
  return `√(${squares.join(" + ")}) = √${short(v[0] * v[0] + v[1] * v[1], 3)}`;
}

const LIMIT = 8;
const UNIT = 22; // pixels for a length of one
const [CENTRE_X, CENTRE_Y] = [200, 190];
const PRESETS = [[3, 4], [6, 8], [5, 5], [-3, 4], [0, 0]];
const place = ([x, y]) => [CENTRE_X + UNIT * x, CENTRE_Y - UNIT * y];

const listed = (v) => v.map((component) => short(component, 3)).join(", ");

function drawGrid(picture) {
  for (let i = -LIMIT; i <= LIMIT; i++) {
    const look = { class: i === 0 ? "mathllm-axis" : "mathllm-grid" };
    const [[x, y], [left, bottom], [right, top]] = [[i, i], [-LIMIT, -LIMIT], [LIMIT, LIMIT]].map(place);
    svg("line", { x1: x, x2: x, y1: bottom, y2: top, ...look }, picture);
    svg("line", { x1: left, x2: right, y1: y, y2: y, ...look }, picture);
    if (i % 4 === 0 && i !== 0) {
      svg("text", { x, y: CENTRE_Y + 15, "text-anchor": "middle" }, picture, fixed(i, 0));
      svg("text", { x: CENTRE_X - 6, y: y + 4, "text-anchor": "end" }, picture, fixed(i, 0));
    }
  }
}

function drawTriangle(group, v) {
  group.replaceChildren();
  const [[x0, y0], [x1, y1]] = [place([0, 0]), place(v)];
  const across = svg("g", { class: "mathllm-c", "stroke-width": 3 }, group);
  svg("line", { x1: x0, y1: y0, x2: x1, y2: y0 }, across);
  const up = svg("g", { class: "mathllm-b", "stroke-width": 3 }, group);
  svg("line", { x1, y1: y0, x2: x1, y2: y1 }, up);
  const own = svg("g", { class: "mathllm-a" }, group);
  if (norm(v) === 0) svg("circle", { cx: x0, cy: y0, r: 7 }, own);
  else arrow([x0, y0], [x1, y1], 4, own);
  if (!v[0] || !v[1]) return;
  const below = { x: (x0 + x1) / 2, y: y0 + (v[1] > 0 ? 17 : -8), "text-anchor": "middle" };
  svg("text", { ...below, "font-weight": 600 }, across, short(v[0], 3));
  const beside = { x: x1 + (v[0] > 0 ? 8 : -8), y: (y0 + y1) / 2 + 4, "text-anchor": v[0] > 0 ? "start" : "end" };
  svg("text", { ...beside, "font-weight": 600 }, up, short(v[1], 3));
}

function render({ model, el }) {
  const figure = new Figure("mathllm-vector-length", model, el);
  const picture = figure.picture("14 4 372 372", "24rem");
  drawGrid(picture);
  const triangle = svg("g", {}, picture);
  ["first component v₁", "second component v₂"].forEach((name, i) =>
    figure.slider(name, [-LIMIT, LIMIT, 0.5], ["components", i], (component) => short(component, 3)),
  );
  const [row] = figure.rows(["length ‖v‖ ="]);
  for (const preset of PRESETS) figure.button(`[${listed(preset)}]`, () => model.set("components", [...preset]));
  figure.hider("length");

  // Dragging the tip is a second way to move the arrow; the sliders do all of it from the keyboard.
  const handle = svg("circle", { r: 22, class: "mathllm-handle" }, picture);
  handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId));
  handle.addEventListener("pointermove", (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    figure.change(() => model.set("components", snap([(x - CENTRE_X) / UNIT, (CENTRE_Y - y) / UNIT])));
  });

  function draw() {
    const v = model.get("components");
    drawTriangle(triangle, v);
    const [cx, cy] = place(v);
    set(handle, { cx, cy });
    const length = short(norm(v), 3);
    row.formula.textContent = figure.shown(`${formula(v)} ${Number(length) === norm(v) ? "=" : "≈"}`);
    row.value.textContent = figure.hidden ? "" : length;
    return `Arrow from the origin to (${listed(v)}).${figure.hidden ? "" : ` Its length is ${length}.`}`;
  }

  return figure.follow(["components"], draw);
}

export default { render };
