// One probability, multiplied by itself: the product leaves the range of number types, the sum of logarithms does not.

// The nearest number that a float16 can hold; ties go to the even one.
export function toHalf(x) {
  if (x === 0) return 0;
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(x))), -14);
  const step = 2 ** (exponent - 10);
  const scaled = x / step;
  let whole = Math.floor(scaled);
  const rest = scaled - whole;
  if (rest > 0.5 || (rest === 0.5 && whole % 2 !== 0)) whole += 1;
  return whole * step;
}

const ROUNDING = { float16: toHalf, float32: Math.fround, float64: (x) => x };

// p · p · … · p, rounded after every product as the number type does.
export function product(p, factors, type) {
  const round = ROUNDING[type];
  const rounded = round(p);
  let result = 1;
  for (let i = 0; i < factors; i++) result = round(result * rounded);
  return result;
}

export function logSum(p, factors) {
  return factors * Math.log(p);
}

// Below this exponent e^x is rounded to zero: half of the smallest number of the type.
export function lowest(type) {
  return { float16: -25, float32: -150, float64: -1075 }[type] * Math.LN2;
}

// "1.234 × 10^−45" in plain text, "0" for what has vanished.
export function format(value) {
  if (value === 0) return "0";
  if (value >= 1e-4) return value.toPrecision(4);
  const [digits, exponent] = value.toExponential(3).split("e-");
  return `${digits} × 10⁻${[...exponent].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
}

const TYPES = ["float16", "float32", "float64"];
const [LEFT, RIGHT] = [80, 350];
const REACH = 800; // the scale ends at −800

function place(x) {
  return LEFT + ((RIGHT - LEFT) * Math.min(-x, REACH)) / REACH;
}

// The scale with its marks, a track for each type as far as it reaches, and the bars that the products fill.
function drawScale(picture) {
  const bars = TYPES.map((type, row) => {
    const [y, end] = [12 + 34 * row, place(lowest(type))];
    svg("text", { x: LEFT - 8, y: y + 16, "text-anchor": "end" }, picture, type);
    svg("rect", { x: LEFT, y, width: end - LEFT, height: 22, class: "mathllm-track" }, picture);
    svg("line", { x1: end, y1: y - 3, x2: end, y2: y + 25, class: "mathllm-axis" }, picture);
    return svg("rect", { x: LEFT, y: y + 4, height: 14, class: "mathllm-a", stroke: "none" }, picture);
  });
  svg("text", { x: LEFT - 8, y: 130, "text-anchor": "end" }, picture, "sum of ln");
  const total = svg("rect", { x: LEFT, y: 118, height: 14, class: "mathllm-c", stroke: "none" }, picture);
  svg("line", { x1: LEFT, y1: 142, x2: RIGHT, y2: 142, class: "mathllm-axis" }, picture);
  for (const tick of [0, -200, -400, -600, -800]) {
    const x = place(tick);
    svg("line", { x1: x, y1: 138, x2: x, y2: 146, class: "mathllm-axis" }, picture);
    svg("text", { x, y: 161, "text-anchor": "middle" }, picture, fixed(tick, 0));
  }
  const title = { x: (LEFT + RIGHT) / 2, y: 180, "text-anchor": "middle" };
  svg("text", title, picture, "ln of the product; a type ends at its mark");
  return [...bars, total];
}

function render({ model, el }) {
  const figure = new Figure("mathllm-log-product", model, el);
  const bars = drawScale(figure.picture("0 0 380 186", "32rem"));
  figure.slider("probability of each", [0.01, 0.99, 0.01], "probability", (p) => p.toFixed(2));
  figure.slider("how many factors", [1, 1000, 1], "factors");
  const rows = figure.rows([...TYPES, "sum of logarithms"]);
  figure.hider("numbers");

  function draw() {
    const [p, factors] = figure.get("probability", "factors");
    const total = logSum(p, factors);
    const products = TYPES.map((type) => product(p, factors, type));
    const logs = [...products.map((value) => (value > 0 ? Math.log(value) : 0)), total];
    logs.forEach((log, i) => set(bars[i], { width: place(log) - LEFT }));
    const numbers = products.map((value) => (value === 0 ? "0 (vanished)" : format(value)));
    [...numbers, fixed(total, 1)].forEach((text, i) => (rows[i].value.textContent = figure.shown(text)));
    const gone = TYPES.filter((_, i) => products[i] === 0);
    const fate = gone.length ? `has vanished in ${gone.join(", ")}` : "is positive in all types";
    return `${factors} factors of ${p.toFixed(2)}: the sum of logarithms is ${fixed(total, 1)}; the product ${fate}.`;
  }

  return figure.follow(["probability", "factors"], draw);
}

export default { render };
