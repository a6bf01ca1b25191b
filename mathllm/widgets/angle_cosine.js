// Two arrows, an angle and two lengths. The cosine follows the angle alone; the dot product follows all three.

export function dot(a, b) {
  return a.reduce((sum, component, i) => sum + component * b[i], 0);
}

export function norm(a) {
  return Math.hypot(...a);
}

export function cosineSimilarity(a, b) {
  return dot(a, b) / (norm(a) * norm(b));
}

// The arrows that the sliders describe: a along the first axis, b turned by `degrees`.
export function arrows(degrees, lengthA, lengthB) {
  const angle = (degrees * Math.PI) / 180;
  return [[lengthA, 0], [lengthB * Math.cos(angle), lengthB * Math.sin(angle)]];
}

// Three decimals, a true minus sign, and never "−0.000".
export function format(value) {
  const text = value.toFixed(3);
  return (Number(text) === 0 ? "0.000" : text).replace("-", "−");
}

const UNIT = 36; // pixels for a length of one
const ORIGIN = [200, 168];
const SLIDERS = [
  ["angle", "angle θ", 0, 180, 1, "°"],
  ["length_a", "length of a", 0.5, 4, 0.1, ""],
  ["length_b", "length of b", 0.5, 4, 0.1, ""],
];

function place(vector) {
  return [ORIGIN[0] + UNIT * vector[0], ORIGIN[1] - UNIT * vector[1]];
}

function drawArrow(group, vector, letter) {
  group.replaceChildren();
  const [x, y] = place(vector);
  const length = norm(vector);
  const [ux, uy] = [vector[0] / length, -vector[1] / length];
  svg("line", { x1: ORIGIN[0], y1: ORIGIN[1], x2: x - 8 * ux, y2: y - 8 * uy, "stroke-width": 3 }, group);
  const wings = [1, -1].map((side) => `${x - 11 * ux + side * 5 * uy},${y - 11 * uy - side * 5 * ux}`);
  svg("polygon", { points: `${x},${y} ${wings.join(" ")}`, stroke: "none" }, group);
  const label = svg("text", { x: x + 14 * ux, y: y + 14 * uy + 5, "text-anchor": "middle", stroke: "none" }, group);
  label.textContent = letter;
}

function render({ model, el }) {
  const root = frame("mathllm-angle-cosine", el);
  const picture = svg("svg", { viewBox: "20 0 360 190", class: "mathllm-plot", role: "img" }, root);
  const shadow = svg("g", { class: "mathllm-shadow" }, picture);
  const arc = svg("path", { class: "mathllm-arc", fill: "none" }, picture);
  const arrowA = svg("g", { class: "mathllm-a" }, picture);
  const arrowB = svg("g", { class: "mathllm-b" }, picture);

  const controls = html("div", "mathllm-controls", root);
  const inputs = SLIDERS.map(([trait, name, min, max, step, unit]) => {
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
    return { trait, unit, input, output };
  });

  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const rows = ["cosine similarity", "dot product"].map((name) => {
    const row = html("div", "mathllm-row", readout);
    html("span", "mathllm-name", row, name);
    return { formula: html("span", "mathllm-formula", row), value: html("strong", "mathllm-value", row) };
  });
  const buttons = html("div", "mathllm-buttons", root);
  const button = html("button", "mathllm-button", buttons);
  button.type = "button";
  let hidden = false;
  button.addEventListener("click", () => {
    hidden = !hidden;
    update();
  });

  function update() {
    const [angle, lengthA, lengthB] = SLIDERS.map(([trait]) => model.get(trait));
    const [a, b] = arrows(angle, lengthA, lengthB);
    inputs.forEach(({ trait, unit, input, output }) => {
      const value = model.get(trait);
      input.value = value;
      output.textContent = unit ? `${value}${unit}` : value.toFixed(1);
    });
    drawArrow(arrowA, a, "a");
    drawArrow(arrowB, b, "b");
    const [end] = place([b[0], 0]);
    const [tipX, tipY] = place(b);
    shadow.replaceChildren();
    svg("line", { x1: tipX, y1: tipY, x2: end, y2: ORIGIN[1], "stroke-dasharray": "4 4" }, shadow);
    svg("line", { x1: ORIGIN[0], y1: ORIGIN[1] + 7, x2: end, y2: ORIGIN[1] + 7, "stroke-width": 4 }, shadow);
    const [arcX, arcY] = [ORIGIN[0] + 26 * (b[0] / lengthB), ORIGIN[1] - 26 * (b[1] / lengthB)];
    arc.setAttribute("d", `M ${ORIGIN[0] + 26} ${ORIGIN[1]} A 26 26 0 0 0 ${arcX} ${arcY}`);

    const [cosine, product] = [cosineSimilarity(a, b), dot(a, b)];
    rows[0].formula.textContent = `cos ${angle}°`;
    rows[1].formula.textContent = `${lengthA.toFixed(1)} × ${lengthB.toFixed(1)} × cos ${angle}°`;
    rows[0].value.textContent = hidden ? "?" : format(cosine);
    rows[1].value.textContent = hidden ? "?" : format(product);
    button.textContent = hidden ? "Show the numbers" : "Hide the numbers and predict";
    button.setAttribute("aria-pressed", String(hidden));
    const numbers = hidden ? "" : ` Cosine ${format(cosine)}, dot product ${format(product)}.`;
    picture.setAttribute(
      "aria-label",
      `Arrow a of length ${lengthA} to the right, arrow b of length ${lengthB} at ${angle} degrees.${numbers}`,
    );
  }

  SLIDERS.forEach(([trait]) => model.on(`change:${trait}`, update));
  update();
  return () => SLIDERS.forEach(([trait]) => model.off(`change:${trait}`, update));
}

export default { render };
