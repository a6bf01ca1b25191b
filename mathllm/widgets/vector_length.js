// An arrow in the plane and the right triangle under it. Its length is Pythagoras' theorem, and so is every norm.

export function norm(v) {
  return Math.hypot(...v);
}

// A point of the drawing, in grid units, snapped to halves and kept on the plane.
export function snap(v) {
  return v.map((component) => Math.min(LIMIT, Math.max(-LIMIT, Math.round(2 * component) / 2)) + 0);
}

export function format(value, digits = 3) {
  return String(Number(value.toFixed(digits)) + 0).replace("-", "−");
}

// "√(3² + (−4)²) = √25"
export function formula(v) {
  const squares = v.map((component) => (component < 0 ? `(${format(component)})²` : `${format(component)}²`));
  return `√(${squares.join(" + ")}) = √${format(v[0] * v[0] + v[1] * v[1])}`;
}

const LIMIT = 8;
const UNIT = 22; // pixels for a length of one
const [CENTRE_X, CENTRE_Y] = [200, 190];
const PRESETS = [[3, 4], [6, 8], [5, 5], [-3, 4], [0, 0]];
const place = ([x, y]) => [CENTRE_X + UNIT * x, CENTRE_Y - UNIT * y];

function drawGrid(picture) {
  for (let i = -LIMIT; i <= LIMIT; i++) {
    const className = i === 0 ? "mathllm-axis" : "mathllm-grid";
    const [x, y] = place([i, i]);
    const [left, bottom] = place([-LIMIT, -LIMIT]);
    const [right, top] = place([LIMIT, LIMIT]);
    svg("line", { x1: x, x2: x, y1: bottom, y2: top, class: className }, picture);
    svg("line", { x1: left, x2: right, y1: y, y2: y, class: className }, picture);
    if (i % 4 === 0 && i !== 0) {
      svg("text", { x, y: CENTRE_Y + 15, "text-anchor": "middle" }, picture).textContent = format(i);
      svg("text", { x: CENTRE_X - 6, y: y + 4, "text-anchor": "end" }, picture).textContent = format(i);
    }
  }
}

function drawTriangle(group, v) {
  group.replaceChildren();
  const [[x0, y0], [x1, y1]] = [place([0, 0]), place(v)];
  const legs = svg("g", { class: "mathllm-c", "stroke-width": 3 }, group);
  svg("line", { x1: x0, y1: y0, x2: x1, y2: y0 }, legs);
  const up = svg("g", { class: "mathllm-b", "stroke-width": 3 }, group);
  svg("line", { x1, y1: y0, x2: x1, y2: y1 }, up);
  const length = norm(v);
  const arrow = svg("g", { class: "mathllm-a", "stroke-width": 4 }, group);
  if (length === 0) {
    svg("circle", { cx: x0, cy: y0, r: 5 }, arrow);
    return;
  }
  const [ux, uy] = [v[0] / length, -v[1] / length];
  svg("line", { x1: x0, y1: y0, x2: x1 - 10 * ux, y2: y1 - 10 * uy }, arrow);
  const wings = [1, -1].map((side) => `${x1 - 14 * ux + side * 7 * uy},${y1 - 14 * uy - side * 7 * ux}`);
  svg("polygon", { points: `${x1},${y1} ${wings.join(" ")}`, stroke: "none" }, arrow);
  if (v[0] && v[1]) {
    const below = v[1] > 0 ? 17 : -8;
    const beside = v[0] > 0 ? ["start", 8] : ["end", -8];
    svg("text", { x: (x0 + x1) / 2, y: y0 + below, "text-anchor": "middle", "font-weight": 600 }, legs).textContent =
      format(v[0]);
    svg("text", { x: x1 + beside[1], y: (y0 + y1) / 2 + 4, "text-anchor": beside[0], "font-weight": 600 }, up).textContent =
      format(v[1]);
  }
}

function render({ model, el }) {
  const root = frame("mathllm-vector-length", el);
  const picture = svg("svg", { viewBox: "14 4 372 372", class: "mathllm-plot", role: "img" }, root);
  drawGrid(picture);
  const triangle = svg("g", {}, picture);

  function move(v) {
    model.set("components", v);
    model.save_changes();
    update();
  }

  const controls = html("div", "mathllm-controls", root);
  const sliders = ["first component v₁", "second component v₂"].map((name, i) => {
    const label = html("label", "", controls);
    html("span", "", label, name);
    const input = html("input", "", label);
    Object.assign(input, { type: "range", min: -LIMIT, max: LIMIT, step: 0.5 });
    const output = html("output", "", label);
    input.addEventListener("input", () => move(model.get("components").with(i, Number(input.value))));
    return { input, output };
  });

  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const row = html("div", "mathllm-row", readout);
  html("span", "mathllm-name", row, "length ‖v‖ =");
  const working = html("span", "mathllm-formula", row);
  const value = html("strong", "mathllm-value", row);

  const buttons = html("div", "mathllm-buttons", root);
  for (const preset of PRESETS) {
    const button = html("button", "mathllm-button", buttons, `[${preset.map((c) => format(c)).join(", ")}]`);
    button.type = "button";
    button.addEventListener("click", () => move([...preset]));
  }
  let hidden = false;
  const hide = html("button", "mathllm-button", buttons);
  hide.type = "button";
  hide.addEventListener("click", () => {
    hidden = !hidden;
    update();
  });

  // Dragging the tip is a second way to move the arrow; the sliders do all of it from the keyboard.
  const handle = svg("circle", { r: 22, class: "mathllm-handle" }, picture);
  handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId));
  handle.addEventListener("pointermove", (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    move(snap([(x - CENTRE_X) / UNIT, (CENTRE_Y - y) / UNIT]));
  });

  function update() {
    const v = model.get("components");
    sliders.forEach(({ input, output }, i) => {
      input.value = v[i];
      output.textContent = format(v[i]);
    });
    drawTriangle(triangle, v);
    const [x, y] = place(v);
    handle.setAttribute("cx", x);
    handle.setAttribute("cy", y);
    const length = format(norm(v));
    working.textContent = hidden ? "?" : `${formula(v)} ${Number(length) === norm(v) ? "=" : "≈"}`;
    value.textContent = hidden ? "" : length;
    hide.textContent = hidden ? "Show the length" : "Hide the length and predict";
    hide.setAttribute("aria-pressed", String(hidden));
    const words = `Arrow from the origin to (${v.map((c) => format(c)).join(", ")}).`;
    picture.setAttribute("aria-label", hidden ? words : `${words} Its length is ${length}.`);
  }

  model.on("change:components", update);
  update();
  return () => model.off("change:components", update);
}

export default { render };
