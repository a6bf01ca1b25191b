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
  return back.reduce((sum, value, i) => sum + (value - (active.includes(i + 1) ? 1 : 0)) ** 2, 0);
}

const [CENTRE, RADIUS, ZERO, END, ROW] = [[96, 112], 66, 276, 350, 26];
const arrow = ([x, y], scale = 1) => [CENTRE[0] + RADIUS * scale * x, CENTRE[1] - RADIUS * scale * y];

function render({ model, el }) {
  const root = frame("mathllm-feature-plane", el);
  const legend = html("div", "mathllm-name", root, "bars: pale, the read-out; full, what passes bias and ReLU");
  legend.setAttribute("aria-hidden", "true");
  const picture = svg("svg", { viewBox: "0 0 400 224", class: "mathllm-plot", role: "img" }, root);
  picture.style.cssText = "max-width: 30rem; margin: 0 auto";
  const buttons = html("div", "mathllm-buttons", root);
  const controls = html("div", "mathllm-controls", root);
  const sliders = [
    ["features", "features n", 2, 8, 1, (v) => String(v)],
    ["bias", "bias b", -1, 0, 0.05, (v) => v.toFixed(2)],
  ].map(([trait, name, min, max, step, format]) => {
    const label = html("label", "", controls);
    html("span", "", label, name);
    const input = html("input", "", label);
    Object.assign(input, { type: "range", min, max, step });
    const output = html("output", "", label);
    input.addEventListener("input", () => {
      const value = Number(input.value);
      if (trait === "features") model.set("active", model.get("active").filter((i) => i <= value));
      model.set(trait, value);
      model.save_changes();
      update();
    });
    return { trait, input, output, format };
  });
  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");

  function toggle(i) {
    const active = model.get("active");
    model.set("active", active.includes(i) ? active.filter((j) => j !== i) : [...active, i].sort((a, b) => a - b));
    model.save_changes();
    update();
  }

  function drawButtons(n, active) {
    while (buttons.childElementCount > n) buttons.lastChild.remove();
    while (buttons.childElementCount < n) {
      const i = buttons.childElementCount + 1;
      const button = html("button", "mathllm-button", buttons);
      button.addEventListener("click", () => toggle(i));
    }
    [...buttons.children].forEach((button, i) => {
      const on = active.includes(i + 1);
      button.textContent = `${i + 1} ${on ? "on" : "off"}`;
      button.setAttribute("aria-label", `feature ${i + 1}`);
      button.setAttribute("aria-pressed", String(on));
      button.classList.toggle("mathllm-value", on);
    });
  }

  function draw(n, active, bias) {
    picture.replaceChildren();
    const units = directions(n);
    const sum = added(n, active);
    svg("circle", { cx: CENTRE[0], cy: CENTRE[1], r: RADIUS, fill: "none", class: "mathllm-grid" }, picture);
    units.forEach((unit, i) => {
      const look = active.includes(i + 1) ? "mathllm-a" : "mathllm-arc";
      const [x, y] = arrow(unit);
      svg("line", { x1: CENTRE[0], y1: CENTRE[1], x2: x, y2: y, class: look, "stroke-width": 2 }, picture);
      const [a, b] = arrow(unit, 1.22);
      svg("text", { x: a, y: b + 4, "text-anchor": "middle" }, picture).textContent = i + 1;
    });
    const length = Math.hypot(...sum);
    const [x, y] = arrow(sum, length > 1.3 ? 1.3 / length : 1); // a longer sum is cut at the edge
    svg("circle", { cx: x, cy: y, r: 5, class: "mathllm-c" }, picture);
    svg("line", { x1: CENTRE[0], y1: CENTRE[1], x2: x, y2: y, class: "mathllm-c", "stroke-width": 3 }, picture);

    const read = readOuts(n, active);
    const back = comesBack(n, active, bias);
    const unit = (END - ZERO) / Math.max(1.2, ...read.map(Math.abs));
    const top = CENTRE[1] - (ROW * n) / 2;
    svg("line", { x1: ZERO, x2: ZERO, y1: top - 4, y2: top + ROW * n, class: "mathllm-axis" }, picture);
    read.forEach((value, i) => {
      const y = top + i * ROW;
      const look = active.includes(i + 1) ? "mathllm-a" : "mathllm-b";
      const left = ZERO + Math.min(0, value) * unit;
      svg("rect", { x: left, y, width: Math.abs(value) * unit, height: 16, class: `${look} mathllm-pale` }, picture);
      svg("rect", { x: ZERO, y, width: back[i] * unit, height: 16, class: look }, picture);
      svg("text", { x: 196, y: y + 13, "text-anchor": "end" }, picture).textContent = i + 1;
      svg("text", { x: 394, y: y + 13, "text-anchor": "end" }, picture).textContent = back[i].toFixed(2);
    });
  }

  function update() {
    const [n, bias] = sliders.map(({ trait }) => model.get(trait));
    const active = model.get("active");
    drawButtons(n, active);
    draw(n, active, bias);
    sliders.forEach(({ trait, input, output, format }) => {
      input.value = model.get(trait);
      output.textContent = format(model.get(trait));
    });
    const back = comesBack(n, active, bias);
    const wrong = back.map((_, i) => i + 1).filter((i) => back[i - 1] > 0.005 && !active.includes(i));
    const list = (items) => (items.length ? items.join(", ") : "none");
    const error = squaredError(n, active, bias);
    readout.textContent = `On: ${list(active)}. Answering though off: ${list(wrong)}. Squared error ${error.toFixed(2)}.`;
    picture.setAttribute("aria-label", `${n} features in a plane, bias ${bias.toFixed(2)}. ${readout.textContent}`);
  }

  const traits = ["change:features", "change:active", "change:bias"];
  traits.forEach((name) => model.on(name, update));
  update();
  return () => traits.forEach((name) => model.off(name, update));
}

export default { render };
