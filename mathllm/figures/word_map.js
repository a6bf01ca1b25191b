// Words on a map whose two directions are distances: across, from one landmark word; up, from another.
import { axes, circle, html, label, line, norm, range, rect, sum, svg, widget } from "./elements.js";

export const distance = (a, b) => norm(a.map((component, i) => component - b[i]));

// The distance of each vector from vector number i.
export const distances = (vectors, i) => vectors.map((vector) => distance(vector, vectors[i]));

// The numbers of the other vectors, nearest to vector number i first.
export function neighbours(vectors, i) {
  const far = distances(vectors, i);
  return range(far.length).filter((j) => j !== i).sort((j, k) => far[j] - far[k]);
}

const BOX = [42, 392, 10, 300];
const [LEFT, RIGHT, TOP, BOTTOM] = BOX;

// Three groups, three shapes, because some readers cannot tell the colours apart.
function mark(group, x, y, parent) {
  const shape = svg("g", { class: `mathllm-${"abc"[group % 3]}` }, parent);
  if (group % 3 === 0) circle(shape, [x, y], 5.5);
  if (group % 3 === 1) rect(shape, [x - 5, y - 5], [10, 10]);
  if (group % 3 === 2) svg("polygon", { points: `${x},${y - 7} ${x - 6.5},${y + 5} ${x + 6.5},${y + 5}` }, shape);
  return shape;
}

// The area that two boxes [left, top, right, bottom] share.
function overlap(a, b) {
  const common = (low, high) => Math.max(0, Math.min(a[high], b[high]) - Math.max(a[low], b[low]));
  return common(0, 2) * common(1, 3);
}

// A place for each label beside its point, where it overlaps least with points and earlier labels.
function placeLabels(points, words) {
  const taken = points.map(([x, y]) => [x - 7, y - 7, x + 7, y + 7]);
  const outside = ([left, top, right, bottom]) => left < LEFT || right > RIGHT + 6 || top < TOP - 8 || bottom > BOTTOM;
  const cost = (box) => sum(taken.map((other) => overlap(box, other))) + (outside(box) ? 1e4 : 0);
  return points.map(([x, y], i) => {
    const width = 7.4 * words[i].length;
    const sides = [[10, -8], [-10 - width, -8], [-width / 2, -25], [-width / 2, 9]];
    const corners = [...sides, [8, 6], [8, -22], [-8 - width, 6], [-8 - width, -22]];
    const boxes = corners.map(([dx, dy]) => [x + dx, y + dy, x + dx + width, y + dy + 16]);
    const best = boxes.reduce((a, b) => (cost(b) < cost(a) ? b : a));
    taken.push(best);
    return [best[0] + width / 2, best[1] + 12.5];
  });
}

function drawLegend(root, names) {
  const legend = svg("svg", { viewBox: "0 0 400 20", class: "mathllm-plot", "aria-hidden": "true" }, root);
  names.forEach((name, g) => {
    const x = 50 + g * (350 / names.length);
    label(mark(g, x, 10, legend), [x + 12, 14.5], name);
  });
}

export default widget("word-map", ["landmarks"], (figure) => {
  const [words, groups, vectors] = figure.get("words", "groups", "vectors");
  const names = [...new Set(groups)];
  drawLegend(figure.root, names);
  const drawing = svg("g", {}, figure.picture("0 0 400 340"));
  let chosen = words[0];
  figure.choice("across: distance from", words, ["landmarks", 0]);
  figure.choice("up: distance from", words, ["landmarks", 1]);
  figure.choice("neighbours of", words, { read: () => chosen, write: (word) => (chosen = word) });
  const row = html("div", "mathllm-row", figure.readout());

  function drawWords(points) {
    const places = placeLabels(points, words);
    points.forEach(([x, y], i) => {
      const weight = { "font-weight": words[i] === chosen ? 700 : 400 };
      label(mark(names.indexOf(groups[i]), x, y, drawing), places[i], words[i], "middle", weight);
    });
  }

  return (landmarks) => {
    const [across, up] = landmarks.map((word) => distances(vectors, words.indexOf(word)));
    const high = Math.max(...across, ...up) * 1.08 || 1;
    const ticks = range(Math.floor(high / 2) + 1).map((i) => 2 * i);
    const axis = (word) => ({ low: 0, high, ticks, title: `distance from “${word}”` });
    drawing.replaceChildren();
    const place = axes(drawing, BOX, ...landmarks.map(axis));
    line(drawing, place(0, 0), place(high, high), { class: "mathllm-axis", "stroke-dasharray": "4 5" });
    drawWords(words.map((_, i) => place(across[i], up[i])));

    const far = distances(vectors, words.indexOf(chosen));
    row.replaceChildren();
    html("span", "mathllm-name", row, `nearest to “${chosen}” first:`);
    for (const j of neighbours(vectors, words.indexOf(chosen))) {
      html("span", "mathllm-formula", row, `${words[j]} ${far[j].toFixed(2)}`);
    }
    const list = words.map((word, j) => `${word}: ${across[j].toFixed(1)} and ${up[j].toFixed(1)}`);
    return `Map of distances from ${landmarks.join(" and from ")}. ${list.join("; ")}`;
  };
});
