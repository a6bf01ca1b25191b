// Words on a map whose two directions are distances: across, from one landmark word; up, from another.

export function distance(a, b) {
  return Math.hypot(...a.map((component, i) => component - b[i]));
}

// How far each vector is from vector number i.
export function distances(vectors, i) {
  return vectors.map((vector) => distance(vector, vectors[i]));
}

// The numbers of the other vectors, nearest to vector number i first.
export function neighbours(vectors, i) {
  const far = distances(vectors, i);
  return [...far.keys()].filter((j) => j !== i).sort((j, k) => far[j] - far[k]);
}

const [LEFT, RIGHT, TOP, BOTTOM] = [42, 392, 10, 300];
const STYLES = ["mathllm-a", "mathllm-b", "mathllm-c"];

// Three groups, three shapes: colour alone would leave some readers out.
function mark(shape, x, y, parent) {
  if (shape === 0) svg("circle", { cx: x, cy: y, r: 5.5 }, parent);
  if (shape === 1) svg("rect", { x: x - 5, y: y - 5, width: 10, height: 10 }, parent);
  if (shape === 2) svg("polygon", { points: `${x},${y - 7} ${x - 6.5},${y + 5} ${x + 6.5},${y + 5}` }, parent);
}

// A place for each label beside its point, where it covers the least of what is there already.
function placeLabels(points, words) {
  const taken = points.map(([x, y]) => [x - 7, y - 7, x + 7, y + 7]);
  const overlap = (a, b) =>
    Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) * Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));
  return points.map(([x, y], i) => {
    const width = 7.4 * words[i].length;
    const sides = [[10, -8], [-10 - width, -8], [-width / 2, -25], [-width / 2, 9]];
    const corners = [...sides, [8, 6], [8, -22], [-8 - width, 6], [-8 - width, -22]];
    const boxes = corners.map(([dx, dy]) => [x + dx, y + dy, x + dx + width, y + dy + 16]);
    const cost = (box) =>
      taken.reduce((sum, other) => sum + overlap(box, other), 0) +
      (box[0] < LEFT || box[2] > RIGHT + 6 || box[1] < TOP - 8 || box[3] > BOTTOM ? 1e4 : 0);
    const best = boxes.reduce((a, b) => (cost(b) < cost(a) ? b : a));
    taken.push(best);
    return [best[0] + width / 2, best[1] + 12.5];
  });
}

function drawAxes(drawing, place, top, [first, second]) {
  for (let tick = 0; tick <= top; tick += 2) {
    const [x, y] = place(tick, tick);
    const look = { class: tick === 0 ? "mathllm-axis" : "mathllm-grid" };
    svg("line", { x1: x, x2: x, y1: BOTTOM, y2: TOP, ...look }, drawing);
    svg("line", { x1: LEFT, x2: RIGHT, y1: y, y2: y, ...look }, drawing);
    svg("text", { x, y: BOTTOM + 16, "text-anchor": "middle" }, drawing, tick);
    if (tick) svg("text", { x: LEFT - 7, y: y + 4, "text-anchor": "end" }, drawing, tick);
  }
  const [x2, y2] = place(top, top);
  svg("line", { x1: LEFT, y1: BOTTOM, x2, y2, class: "mathllm-axis", "stroke-dasharray": "4 5" }, drawing);
  const middle = { x: (LEFT + RIGHT) / 2, y: BOTTOM + 34, "text-anchor": "middle" };
  svg("text", middle, drawing, `distance from “${first}”`);
  const side = { transform: `translate(13 ${(TOP + BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" };
  svg("text", side, drawing, `distance from “${second}”`);
}

function drawLegend(root, names) {
  const legend = svg("svg", { viewBox: "0 0 400 20", class: "mathllm-plot", "aria-hidden": "true" }, root);
  names.forEach((name, g) => {
    const group = svg("g", { class: STYLES[g % 3] }, legend);
    const x = 50 + g * (350 / names.length);
    mark(g % 3, x, 10, group);
    svg("text", { x: x + 12, y: 14.5 }, group, name);
  });
}

function render({ model, el }) {
  const figure = new Figure("mathllm-word-map", model, el);
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
    const labels = placeLabels(points, words);
    points.forEach(([x, y], i) => {
      const shape = names.indexOf(groups[i]) % 3;
      const group = svg("g", { class: STYLES[shape] }, drawing);
      mark(shape, x, y, group);
      const weight = words[i] === chosen ? 700 : 400;
      const label = { x: labels[i][0], y: labels[i][1], "text-anchor": "middle", "font-weight": weight };
      svg("text", label, group, words[i]);
    });
  }

  function draw() {
    const landmarks = model.get("landmarks");
    const [across, up] = landmarks.map((word) => distances(vectors, words.indexOf(word)));
    const top = Math.max(...across, ...up) * 1.08 || 1;
    const place = (x, y) => [LEFT + ((RIGHT - LEFT) * x) / top, BOTTOM - ((BOTTOM - TOP) * y) / top];
    drawing.replaceChildren();
    drawAxes(drawing, place, top, landmarks);
    drawWords(words.map((_, i) => place(across[i], up[i])));

    const i = words.indexOf(chosen);
    const far = distances(vectors, i);
    row.replaceChildren();
    html("span", "mathllm-name", row, `nearest to “${chosen}” first:`);
    for (const j of neighbours(vectors, i)) html("span", "mathllm-formula", row, `${words[j]} ${far[j].toFixed(2)}`);
    const list = words.map((word, j) => `${word}: ${across[j].toFixed(1)} and ${up[j].toFixed(1)}`);
    return `Map of distances from ${landmarks.join(" and from ")}. ${list.join("; ")}`;
  }

  return figure.follow(["landmarks"], draw);
}

export default { render };
