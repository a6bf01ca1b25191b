// RoPE on one pair: query and key are rotated by their positions; their dot product depends on the difference alone.
import { circle, dot, fixed, label, line, svg, widget } from "./elements.js";

export function rotate([x, y], angle) {
  return [x * Math.cos(angle) - y * Math.sin(angle), x * Math.sin(angle) + y * Math.cos(angle)];
}

// The score of a query at position m and a key at position n, rotated by `rate` radians per position.
export const score = (query, key, m, n, rate) => dot(rotate(query, m * rate), rotate(key, n * rate));

const LAST = 30;
const [CENTRE, RADIUS] = [130, 105];
const ORIGIN = [CENTRE, CENTRE];
const place = ([x, y], r = 1) => [CENTRE + r * RADIUS * x, CENTRE - r * RADIUS * y];
const direction = (degrees) => rotate([1, 0], (degrees * Math.PI) / 180);

// An arrow, dashed before the rotation and full after it.
function drawArrow(group, letter, before, after) {
  group.replaceChildren();
  line(group, ORIGIN, place(before), { "stroke-width": 1.5, "stroke-dasharray": "4 4" });
  line(group, ORIGIN, place(after), { "stroke-width": 3 });
  circle(group, place(after), 5);
  label(group, place(after, 1.15), letter, "middle");
}

const TRAITS = ["query_position", "key_position", "rate", "query_angle", "key_angle"];

export default widget("rotary-pair", TRAITS, (figure) => {
  const picture = figure.picture("0 0 260 260", "18rem");
  circle(picture, ORIGIN, RADIUS, { fill: "none", class: "mathllm-grid" });
  svg("path", { d: `M 15 ${CENTRE} H 245 M ${CENTRE} 15 V 245`, class: "mathllm-grid" }, picture);
  const groups = ["a", "b"].map((colour) => svg("g", { class: `mathllm-${colour}` }, picture));
  figure.slider("position m of the query", [0, LAST, 1], "query_position");
  figure.slider("position n of the key", [0, LAST, 1], "key_position");
  figure.slider("radians per position", [0.01, 1, 0.01], "rate", (rate) => rate.toFixed(2));
  const [showScore] = figure.rows([""]);
  for (const [name, step] of [["Both one position forward", 1], ["Both one position back", -1]]) {
    figure.button(name, () => {
      const [m, n] = figure.get("query_position", "key_position").map((position) => position + step);
      if (Math.min(m, n) >= 0 && Math.max(m, n) <= LAST) figure.assign({ query_position: m, key_position: n });
    });
  }

  return (m, n, rate, queryAngle, keyAngle) => {
    const [q, k] = [queryAngle, keyAngle].map(direction);
    drawArrow(groups[0], "q", q, rotate(q, m * rate));
    drawArrow(groups[1], "k", k, rotate(k, n * rate));
    const product = fixed(score(q, k, m, n, rate), 3);
    showScore(`= ${product}`, `distance n − m = ${fixed(n - m, 0)}, score (rotated q)·(rotated k)`);
    const rotated = `both rotated by ${rate.toFixed(2)} radians per position`;
    const words = `A query at position ${m} and a key at position ${n}, ${rotated}.`;
    return `${words} Their dot product is ${product}. Dashed: before the rotation.`;
  };
});
