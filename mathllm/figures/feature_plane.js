// Some of n directions of a plane are added up and read back as relu(x Wᵀ + b), as in the toy model of chapter 16.
import { circle, dot, fixed, html, label, line, norm, range, rect, set, sum, widget } from "./elements.js";

export function directions(n) {
  const angles = range(n).map((i) => Math.PI / 2 - (2 * Math.PI * i) / n);
  return angles.map((angle) => [Math.cos(angle), Math.sin(angle)]);
}

export function added(n, active) {
  const chosen = directions(n).filter((_, i) => active.includes(i + 1));
  return [0, 1].map((component) => sum(chosen.map((direction) => direction[component])));
}

// The read-outs u_j · x, active or not.
export const readOuts = (n, active) => directions(n).map((direction) => dot(direction, added(n, active)));

// The read-outs after bias and ReLU.
export const outputs = (n, active, bias) => readOuts(n, active).map((read) => Math.max(0, read + bias));

export function squaredError(n, active, bias) {
  return sum(outputs(n, active, bias).map((value, i) => (value - (active.includes(i + 1) ? 1 : 0)) ** 2));
}

const [CENTRE, RADIUS, ZERO, END, ROW] = [[96, 112], 66, 276, 350, 26];
const MOST = 8; // features
const point = ([x, y], scale = 1) => [CENTRE[0] + RADIUS * scale * x, CENTRE[1] - RADIUS * scale * y];

function drawPlane(picture, n, active) {
  circle(picture, CENTRE, RADIUS, { fill: "none", class: "mathllm-grid" });
  directions(n).forEach((unit, i) => {
    const look = active.includes(i + 1) ? "mathllm-a" : "mathllm-arc";
    line(picture, CENTRE, point(unit), { class: look, "stroke-width": 2 });
    const [x, y] = point(unit, 1.22);
    label(picture, [x, y + 4], i + 1, "middle");
  });
  const total = added(n, active);
  const end = point(total, Math.min(1, 1.3 / norm(total))); // a longer sum is cut at the edge
  circle(picture, end, 5, "mathllm-c");
  line(picture, CENTRE, end, { class: "mathllm-c", "stroke-width": 3 });
}

function drawBars(picture, n, active, bias) {
  const [read, back] = [readOuts(n, active), outputs(n, active, bias)];
  const unit = (END - ZERO) / Math.max(1.2, ...read.map(Math.abs));
  const top = CENTRE[1] - (ROW * n) / 2;
  line(picture, [ZERO, top - 4], [ZERO, top + ROW * n], "mathllm-axis");
  read.forEach((value, i) => {
    const y = top + i * ROW;
    const look = active.includes(i + 1) ? "mathllm-a" : "mathllm-b";
    rect(picture, [ZERO + Math.min(0, value) * unit, y], [Math.abs(value) * unit, 16], `${look} mathllm-pale`);
    rect(picture, [ZERO, y], [back[i] * unit, 16], look);
    label(picture, [196, y + 13], i + 1, "end");
    label(picture, [394, y + 13], back[i].toFixed(2), "end");
  });
}

export default widget("feature-plane", ["features", "active", "bias"], (figure, model) => {
  html("div", "mathllm-name", figure.root, "bars: pale, the read-out; full, after bias and ReLU");
  const picture = figure.picture("0 0 400 224");
  const buttons = range(MOST).map((i) =>
    figure.button("", () => {
      const others = model.get("active").filter((j) => j !== i + 1);
      const all = [...others, i + 1].sort((a, b) => a - b);
      model.set("active", others.length < model.get("active").length ? others : all);
    }),
  );
  const keep = (n) => figure.assign({ active: model.get("active").filter((i) => i <= n), features: n });
  const features = { read: () => model.get("features"), write: keep };
  figure.slider("features n", [2, MOST, 1], features);
  figure.slider("bias b", [-1, 0, 0.05], "bias", (bias) => fixed(bias, 2));
  const readout = figure.readout();

  return (n, active, bias) => {
    buttons.forEach((button, i) => {
      const on = active.includes(i + 1);
      button.hidden = i >= n;
      button.textContent = `${i + 1} ${on ? "on" : "off"}`;
      set(button, { "aria-label": `feature ${button.textContent}`, "aria-pressed": on });
      button.classList.toggle("mathllm-value", on);
    });
    picture.replaceChildren();
    drawPlane(picture, n, active);
    drawBars(picture, n, active, bias);
    const back = outputs(n, active, bias);
    const wrong = range(n).map((i) => i + 1).filter((i) => back[i - 1] > 0.005 && !active.includes(i));
    const list = (items) => (items.length ? items.join(", ") : "none");
    const error = squaredError(n, active, bias).toFixed(2);
    readout.textContent = `On: ${list(active)}. Not zero although off: ${list(wrong)}. Squared error ${error}.`;
    return `${n} features in a plane, bias ${fixed(bias, 2)}. ${readout.textContent}`;
  };
});
