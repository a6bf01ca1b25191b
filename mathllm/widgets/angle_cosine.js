// Two arrows, an angle and two lengths. The cosine follows the angle alone; the dot product follows all three.

export function dot(a, b) {
  return sum(a.map((component, i) => component * b[i]));
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

const UNIT = 36; // pixels for a length of one
const [X, Y] = [200, 168]; // the origin
const place = (vector) => [X + UNIT * vector[0], Y - UNIT * vector[1]];

function render({ model, el }) {
  const figure = new Figure("mathllm-angle-cosine", model, el);
  const picture = figure.picture("20 0 360 190", "40rem");
  const shadow = svg("g", { class: "mathllm-shadow" }, picture);
  const arc = svg("path", { class: "mathllm-arc", fill: "none" }, picture);
  const groups = ["a", "b"].map((letter) => svg("g", { class: `mathllm-${letter}` }, picture));
  figure.slider("angle θ", [0, 180, 1], "angle", (degrees) => `${degrees}°`);
  figure.slider("length of a", [0.5, 4, 0.1], "length_a", (length) => length.toFixed(1));
  figure.slider("length of b", [0.5, 4, 0.1], "length_b", (length) => length.toFixed(1));
  const rows = figure.rows(["cosine similarity", "dot product"]);
  figure.hider("numbers");

  function drawShadow(b, lengthB) {
    const [[tipX, tipY], [end]] = [place(b), place([b[0], 0])];
    shadow.replaceChildren();
    svg("line", { x1: tipX, y1: tipY, x2: end, y2: Y, "stroke-dasharray": "4 4" }, shadow);
    svg("line", { x1: X, y1: Y + 7, x2: end, y2: Y + 7, "stroke-width": 4 }, shadow);
    const [arcX, arcY] = [X + 26 * (b[0] / lengthB), Y - 26 * (b[1] / lengthB)];
    set(arc, { d: `M ${X + 26} ${Y} A 26 26 0 0 0 ${arcX} ${arcY}` });
  }

  function draw() {
    const [angle, lengthA, lengthB] = figure.get("angle", "length_a", "length_b");
    const [a, b] = arrows(angle, lengthA, lengthB);
    [a, b].forEach((vector, i) => {
      groups[i].replaceChildren();
      arrow([X, Y], place(vector), 3, groups[i], "ab"[i]);
    });
    drawShadow(b, lengthB);
    const [cosine, product] = [cosineSimilarity(a, b), dot(a, b)].map((value) => fixed(value, 3));
    rows[0].formula.textContent = `cos ${angle}°`;
    rows[1].formula.textContent = `${lengthA.toFixed(1)} × ${lengthB.toFixed(1)} × cos ${angle}°`;
    rows[0].value.textContent = figure.shown(cosine);
    rows[1].value.textContent = figure.shown(product);
    const numbers = figure.hidden ? "" : ` Cosine ${cosine}, dot product ${product}.`;
    return `Arrow a of length ${lengthA} to the right, arrow b of length ${lengthB} at ${angle} degrees.${numbers}`;
  }

  return figure.follow(["angle", "length_a", "length_b"], draw);
}

export default { render };
