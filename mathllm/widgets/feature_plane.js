// Some of n directions of a plane are added up; what comes back is relu(x Wᵀ + b), as in the toy model of chapter 16.

export function directions(n) {
  return Array.from({ length: n }, (_, i) => {
    const angle = Math.PI / 2 - (2 * Math.PI * i) / n;
    return [Math.cos(angle), Math.sin(angle)];
  });
}

export function added(n, active) {
  const chosen = directions(n).filter((_, i) => active.includes(i + 1));
  return chosen.reduce(([x, y], [u, v]) => [x + u, y + v], [0, 0]);
}

// The read-outs u_j · x, active or not.
export function readOuts(n, active) {
  const [x, y] = added(n, active);
  return directions(n).map(([u, v]) => u * x + v * y);
}

// What passes the bias and the ReLU.
export function comesBack(n, active, bias) {
  return readOuts(n, active).map((read) => Math.max(0, read + bias));
}

export function squaredError(n, active, bias) {
  const back = comesBack(n, active, bias);
  return sum(back.map((value, i) => (value - (active.includes(i + 1) ? 1 : 0)) ** 2));
}

const [CENTRE, RADIUS, ZERO, END, ROW] = [[96, 112], 66, 276, 350, 26];
const MOST = 8; // features
const point = ([x, y], scale = 1) => [CENTRE[0] + RADIUS * scale * x, CENTRE[1] - RADIUS * scale * y];

function drawPlane(picture, n, active) {
  svg("circle", { cx: CENTRE[0], cy: CENTRE[1], r: RADIUS, fill: "none", class: "mathllm-grid" }, picture);
  const ray = ([x2, y2], look) => svg("line", { x1: CENTRE[0], y1: CENTRE[1], x2, y2, ...look }, picture);
  directions(n).forEach((unit, i) => {
    ray(point(unit), { class: active.includes(i + 1) ? "mathllm-a" : "mathllm-arc", "stroke-width": 2 });
    const [x, y] = point(unit, 1.22);
    svg("text", { x, y: y + 4, "text-anchor": "middle" }, picture, i + 1);
  });
  const total = added(n, active);
  const length = Math.hypot(...total);
  const [cx, cy] = point(total, length > 1.3 ? 1.3 / length : 1); // a longer sum is cut at the edge
  svg("circle", { cx, cy, r: 5, class: "mathllm-c" }, picture);
  ray([cx, cy], { class: "mathllm-c", "stroke-width": 3 });
}

function drawBars(picture, n, active, bias) {
  const [read, back] = [readOuts(n, active), comesBack(n, active, bias)];
  const unit = (END - ZERO) / Math.max(1.2, ...read.map(Math.abs));
  const top = CENTRE[1] - (ROW * n) / 2;
  svg("line", { x1: ZERO, x2: ZERO, y1: top - 4, y2: top + ROW * n, class: "mathllm-axis" }, picture);
  read.forEach((value, i) => {
    const y = top + i * ROW;
    const look = active.includes(i + 1) ? "mathllm-a" : "mathllm-b";
    const left = ZERO + Math.min(0, value) * unit;
    svg("rect", { x: left, y, width: Math.abs(value) * unit, height: 16, class: `${look} mathllm-pale` }, picture);
    svg("rect", { x: ZERO, y, width: back[i] * unit, height: 16, class: look }, picture);
    svg("text", { x: 196, y: y + 13, "text-anchor": "end" }, picture, i + 1);
    svg("text", { x: 394, y: y + 13, "text-anchor": "end" }, picture, back[i].toFixed(2));
  });
}

function render({ model, el }) {
  const figure = new Figure("mathllm-feature-plane", model, el);
  html("div", "mathllm-name", figure.root, "bars: pale, the read-out; full, what passes bias and ReLU");
  const picture = figure.picture("0 0 400 224");
  const buttons = Array.from({ length: MOST }, (_, i) => {
    const button = figure.button("", () => {
      const others = model.get("active").filter((j) => j !== i + 1);
      const all = [...others, i + 1].sort((a, b) => a - b);
      model.set("active", others.length < model.get("active").length ? others : all);
    });
    return set(button, { "aria-label": `feature ${i + 1}` });
  });
  const features = {
    read: () => model.get("features"),
    write: (n) => {
      model.set("active", model.get("active").filter((i) => i <= n));
      model.set("features", n);
    },
  };
  figure.slider("features n", [2, MOST, 1], features);
  figure.slider("bias b", [-1, 0, 0.05], "bias", (bias) => fixed(bias, 2));
  const readout = figure.readout();

  function draw() {
    const [n, active, bias] = figure.get("features", "active", "bias");
    buttons.forEach((button, i) => {
      const on = active.includes(i + 1);
      button.hidden = i >= n;
      button.textContent = `${i + 1} ${on ? "on" : "off"}`;
      set(button, { "aria-pressed": on });
      button.classList.toggle("mathllm-value", on);
    });
    picture.replaceChildren();
    drawPlane(picture, n, active);
    drawBars(picture, n, active, bias);
    const back = comesBack(n, active, bias);
    const wrong = back.map((_, i) => i + 1).filter((i) => back[i - 1] > 0.005 && !active.includes(i));
    const list = (items) => (items.length ? items.join(", ") : "none");
    const error = squaredError(n, active, bias).toFixed(2);
    readout.textContent = `On: ${list(active)}. Answering though off: ${list(wrong)}. Squared error ${error}.`;
    return `${n} features in a plane, bias ${fixed(bias, 2)}. ${readout.textContent}`;
  }

  return figure.follow(["features", "active", "bias"], draw);
}

export default { render };
