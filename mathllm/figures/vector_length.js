// An arrow in the plane and the right triangle under it: its length, the norm, follows from Pythagoras' theorem.
import { arrow, axes, circle, label, line, move, norm, range, short, svg, widget } from "./elements.js";

const LIMIT = 8;

// A point of the drawing, in grid units, snapped to halves and kept on the plane.
export function snap(v) {
  return v.map((component) => Math.min(LIMIT, Math.max(-LIMIT, Math.round(2 * component) / 2)) + 0);
}

// "√(3² + (−4)²) = √25"
export function formula(v) {
  const squares = v.map((component) => (component < 0 ? `(${short(component, 3)})²` : `${short(component, 3)}²`));
  return `√(${squares.join(" + ")}) = √${short(v[0] * v[0] + v[1] * v[1], 3)}`;
}

const BOX = [24, 376, 14, 366]; // left, right, top, bottom: 22 pixels for a length of one
const AXIS = { low: -LIMIT, high: LIMIT, ticks: range(17).map((i) => i - LIMIT), numbers: [-8, -4, 0, 4, 8] };
const PRESETS = [[3, 4], [6, 8], [5, 5], [-3, 4], [0, 0]];
const listed = (v) => v.map((component) => short(component, 3)).join(", ");

function drawTriangle(group, place, v) {
  group.replaceChildren();
  const [origin, corner, tip] = [place(0, 0), place(v[0], 0), place(...v)];
  const [across, up, own] = ["c", "b", "a"].map((colour) => svg("g", { class: `mathllm-${colour}` }, group));
  line(across, origin, corner, { "stroke-width": 3 });
  line(up, corner, tip, { "stroke-width": 3 });
  if (norm(v) === 0) circle(own, origin, 7);
  else arrow(origin, tip, 4, own);
  if (!v[0] || !v[1]) return;
  const below = [(origin[0] + tip[0]) / 2, origin[1] + (v[1] > 0 ? 17 : -8)];
  label(across, below, short(v[0], 3), "middle", { "font-weight": 600 });
  const beside = [tip[0] + (v[0] > 0 ? 8 : -8), (origin[1] + tip[1]) / 2 + 4];
  label(up, beside, short(v[1], 3), v[0] > 0 ? "start" : "end", { "font-weight": 600 });
}

export default widget("vector-length", ["components"], (figure, model) => {
  const picture = figure.picture("-2 4 388 384", "24rem");
  const place = axes(picture, BOX, AXIS, AXIS);
  const triangle = svg("g", {}, picture);
  ["first component v₁", "second component v₂"].forEach((name, i) =>
    figure.slider(name, [-LIMIT, LIMIT, 0.5], ["components", i], (component) => short(component, 3)),
  );
  const [showLength] = figure.rows(["length ‖v‖ ="]);
  for (const preset of PRESETS) figure.button(`[${listed(preset)}]`, () => model.set("components", [...preset]));
  figure.hider("length");

  // Dragging the tip is a second way to move the arrow; the sliders do all of it from the keyboard.
  const handle = svg("circle", { r: 22, class: "mathllm-handle" }, picture);
  handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId));
  handle.addEventListener("pointermove", (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    const [[x0, y0], [x1]] = [place(0, 0), place(1, 0)];
    figure.change(() => model.set("components", snap([(x - x0) / (x1 - x0), (y0 - y) / (x1 - x0)])));
  });

  return (v) => {
    drawTriangle(triangle, place, v);
    move(handle, place(...v));
    const length = short(norm(v), 3);
    const working = `${formula(v)} ${Number(length) === norm(v) ? "=" : "≈"}`;
    showLength(figure.hidden ? "" : length, figure.shown(working));
    return `Arrow from the origin to (${listed(v)}).${figure.hidden ? "" : ` Its length is ${length}.`}`;
  };
});
