// One probability, multiplied by itself: the product underflows in each number type, the sum of logarithms does not.
import { fixed, label, line, rect, set, widget } from "./elements.js";

// The nearest number that a float16 can hold; ties go to the even one.
export function toHalf(x) {
  if (x === 0) return 0;
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(x))), -14);
  const step = 2 ** (exponent - 10);
  const scaled = x / step;
  const whole = Math.floor(scaled);
  const rest = scaled - whole;
  return (rest > 0.5 || (rest === 0.5 && whole % 2 !== 0) ? whole + 1 : whole) * step;
}

const TYPES = ["float16", "float32", "float64"];
const ROUNDING = { float16: toHalf, float32: Math.fround, float64: (x) => x };
const SMALLEST = { float16: -24, float32: -149, float64: -1074 }; // exponents of 2

// p · p · … · p, rounded after every product as the number type does.
export function product(p, factors, type) {
  const round = ROUNDING[type];
  const rounded = round(p);
  let result = 1;
  for (let i = 0; i < factors; i++) result = round(result * rounded);
  return result;
}

export const logSum = (p, factors) => factors * Math.log(p);

// Below this exponent e^x is rounded to zero: half of the smallest number of the type.
export const lowest = (type) => (SMALLEST[type] - 1) * Math.LN2;

// "1.234 × 10^−45" in plain text, "0" for a product that was rounded to zero.
export function format(value) {
  if (value === 0) return "0";
  if (value >= 1e-4) return value.toPrecision(4);
  const [digits, exponent] = value.toExponential(3).split("e-");
  return `${digits} × 10⁻${[...exponent].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
}

const [LEFT, RIGHT] = [80, 350];
const place = (x) => LEFT + (RIGHT - LEFT) * Math.min(-x / 800, 1); // the scale ends at −800

// The scale with its marks, a track for each type as far as it reaches, and the bars that the products fill.
function drawScale(picture) {
  const bars = TYPES.map((type, row) => {
    const [y, end] = [12 + 34 * row, place(lowest(type))];
    label(picture, [LEFT - 8, y + 16], type, "end");
    rect(picture, [LEFT, y], [end - LEFT, 22], "mathllm-track");
    line(picture, [end, y - 3], [end, y + 25], "mathllm-axis");
    return rect(picture, [LEFT, y + 4], [0, 14], { class: "mathllm-a", stroke: "none" });
  });
  label(picture, [LEFT - 8, 130], "sum of ln", "end");
  bars.push(rect(picture, [LEFT, 118], [0, 14], { class: "mathllm-c", stroke: "none" }));
  line(picture, [LEFT, 142], [RIGHT, 142], "mathllm-axis");
  for (const tick of [0, -200, -400, -600, -800]) {
    line(picture, [place(tick), 138], [place(tick), 146], "mathllm-axis");
    label(picture, [place(tick), 161], fixed(tick, 0), "middle");
  }
  label(picture, [(LEFT + RIGHT) / 2, 180], "ln of the product; a type ends at its mark", "middle");
  return bars;
}

export default widget("log-product", ["probability", "factors"], (figure) => {
  const bars = drawScale(figure.picture("0 0 380 186", "32rem"));
  figure.slider("probability of each factor", [0.01, 0.99, 0.01], "probability", (p) => p.toFixed(2));
  figure.slider("number of factors", [1, 1000, 1], "factors");
  const rows = figure.rows([...TYPES, "sum of logarithms"]);
  figure.hider("numbers");

  return (p, factors) => {
    const total = logSum(p, factors);
    const products = TYPES.map((type) => product(p, factors, type));
    const logs = [...products.map((value) => (value > 0 ? Math.log(value) : 0)), total];
    logs.forEach((log, i) => set(bars[i], { width: place(log) - LEFT }));
    const numbers = products.map((value) => (value === 0 ? "0 (underflow)" : format(value)));
    [...numbers, fixed(total, 1)].forEach((text, i) => rows[i](figure.shown(text)));
    const zero = TYPES.filter((_, i) => products[i] === 0);
    const fate = zero.length ? `underflows to 0 in ${zero.join(", ")}` : "is positive in all types";
    return `${factors} factors of ${p.toFixed(2)}: the sum of logarithms is ${fixed(total, 1)}; the product ${fate}.`;
  };
});
