// One probability, multiplied by itself: the product leaves the range of small number types, the sum of logarithms does not.

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
const LEFT = 80;
const RIGHT = 350;
const REACH = 800; // the scale ends at −800

function place(x) {
  return LEFT + ((RIGHT - LEFT) * Math.min(-x, REACH)) / REACH;
}

function render({ model, el }) {
  const root = frame("mathllm-log-product", el);
  const picture = svg("svg", { viewBox: "0 0 380 186", class: "mathllm-plot", role: "img" }, root);
  picture.style.maxWidth = "32rem";
  picture.style.margin = "0 auto";
  const bars = TYPES.map((type, row) => {
    const y = 12 + 34 * row;
    const label = svg("text", { x: LEFT - 8, y: y + 16, "text-anchor": "end" }, picture);
    label.textContent = type;
    const end = place(lowest(type));
    svg("rect", { x: LEFT, y, width: end - LEFT, height: 22, class: "mathllm-track" }, picture);
    svg("line", { x1: end, y1: y - 3, x2: end, y2: y + 25, class: "mathllm-axis" }, picture);
    return svg("rect", { x: LEFT, y: y + 4, height: 14, class: "mathllm-a", stroke: "none" }, picture);
  });
  const label = svg("text", { x: LEFT - 8, y: 130, "text-anchor": "end" }, picture);
  label.textContent = "sum of ln";
  const sum = svg("rect", { x: LEFT, y: 118, height: 14, class: "mathllm-c", stroke: "none" }, picture);
  svg("line", { x1: LEFT, y1: 142, x2: RIGHT, y2: 142, class: "mathllm-axis" }, picture);
  for (const tick of [0, -200, -400, -600, -800]) {
    const x = place(tick);
    svg("line", { x1: x, y1: 138, x2: x, y2: 146, class: "mathllm-axis" }, picture);
    const text = svg("text", { x, y: 161, "text-anchor": "middle" }, picture);
    text.textContent = String(tick).replace("-", "−");
  }

  const title = svg("text", { x: (LEFT + RIGHT) / 2, y: 180, "text-anchor": "middle" }, picture);
  title.textContent = "ln of the product; a type ends at its mark";

  const controls = html("div", "mathllm-controls", root);
  const sliders = [["probability", "probability of each", 0.01, 0.99, 0.01], ["factors", "how many factors", 1, 1000, 1]];
  const inputs = sliders.map(([trait, name, min, max, step]) => {
    const row = html("label", "", controls);
    html("span", "", row, name);
    const input = html("input", "", row);
    Object.assign(input, { type: "range", min, max, step });
    const output = html("output", "", row);
    input.addEventListener("input", () => {
      model.set(trait, Number(input.value));
      model.save_changes();
      update();
    });
    return { trait, input, output };
  });
  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const rows = [...TYPES, "sum of logarithms"].map((name) => {
    const row = html("div", "mathllm-row", readout);
    html("span", "mathllm-name", row, name);
    return html("strong", "mathllm-value", row);
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
    const [p, factors] = sliders.map(([trait]) => model.get(trait));
    inputs.forEach(({ trait, input, output }) => {
      input.value = model.get(trait);
      output.textContent = trait === "factors" ? factors : p.toFixed(2);
    });
    const total = logSum(p, factors);
    const products = TYPES.map((type) => product(p, factors, type));
    bars.forEach((bar, i) => bar.setAttribute("width", products[i] > 0 ? place(Math.log(products[i])) - LEFT : 0));
    sum.setAttribute("width", place(total) - LEFT);
    products.forEach((value, i) => {
      rows[i].textContent = hidden ? "?" : value === 0 ? "0 (vanished)" : format(value);
    });
    rows[3].textContent = hidden ? "?" : total.toFixed(1).replace("-", "−");
    button.textContent = hidden ? "Show the numbers" : "Hide the numbers and predict";
    button.setAttribute("aria-pressed", String(hidden));
    const gone = TYPES.filter((_, i) => products[i] === 0);
    picture.setAttribute(
      "aria-label",
      `${factors} factors of ${p.toFixed(2)}: the sum of logarithms is ${total.toFixed(1)}; ` +
        (gone.length ? `the product has vanished in ${gone.join(", ")}.` : "the product is positive in all types."),
    );
  }

  sliders.forEach(([trait]) => model.on(`change:${trait}`, update));
  update();
  return () => sliders.forEach(([trait]) => model.off(`change:${trait}`, update));
}

export default { render };
