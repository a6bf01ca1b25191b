// Two arrows, an angle and two lengths. The cosine depends on the angle alone, the dot product on all three.
import { arrow, dot, fixed, line, norm, set, svg, widget } from "./elements.js";

export function cosineSimilarity(a, b) {
  return dot(a, b) / (norm(a) * norm(b));
}

// The arrows that the sliders describe: a along the first axis, b rotated by `degrees`.
export function arrows(degrees, lengthA, lengthB) {
  const angle = (degrees * Math.PI) / 180;
  return [[lengthA, 0], [lengthB * Math.cos(angle), lengthB * Math.sin(angle)]];
}

const UNIT = 36; // pixels for a length of one
const [X, Y] = [200, 168]; // the origin
const place = ([x, y]) => [X + UNIT * x, Y - UNIT * y];

export default widget("angle-cosine", ["angle", "length_a", "length_b"], (figure) => {
  const picture = figure.picture("20 0 360 190", "40rem");
  const projection = svg("g", { class: "mathllm-c" }, picture);
  const arc = svg("path", { class: "mathllm-arc", fill: "none" }, picture);
  const groups = ["a", "b"].map((letter) => svg("g", { class: `mathllm-${letter}` }, picture));
  figure.slider("angle θ", [0, 180, 1], "angle", (degrees) => `${degrees}°`);
  figure.slider("length of a", [0.5, 4, 0.1], "length_a", (length) => length.toFixed(1));
  figure.slider("length of b", [0.5, 4, 0.1], "length_b", (length) => length.toFixed(1));
  const [showCosine, showProduct] = figure.rows(["cosine similarity", "dot product"]);
  figure.hider("numbers");

  return (angle, lengthA, lengthB) => {
    const [a, b] = arrows(angle, lengthA, lengthB);
    [a, b].forEach((vector, i) => {
      groups[i].replaceChildren();
      arrow([X, Y], place(vector), 3, groups[i], "ab"[i]);
    });
    const [end] = place([b[0], 0]);
    projection.replaceChildren();
    line(projection, place(b), [end, Y], { "stroke-dasharray": "4 4" });
    line(projection, [X, Y + 7], [end, Y + 7], { "stroke-width": 4 });
    set(arc, { d: `M ${X + 26} ${Y} A 26 26 0 0 0 ${X + 26 * (b[0] / lengthB)} ${Y - 26 * (b[1] / lengthB)}` });

    const [cosine, product] = [cosineSimilarity(a, b), dot(a, b)].map((value) => fixed(value, 3));
    showCosine(figure.shown(cosine), `cos ${angle}°`);
    showProduct(figure.shown(product), `${lengthA.toFixed(1)} × ${lengthB.toFixed(1)} × cos ${angle}°`);
    const numbers = figure.hidden ? "" : ` Cosine ${cosine}, dot product ${product}.`;
    return `Arrow a of length ${lengthA} to the right, arrow b of length ${lengthB} at ${angle} degrees.${numbers}`;
  };
});
