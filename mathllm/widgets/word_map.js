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
    const corners = [[10, -8], [-10 - width, -8], [-width / 2, -25], [-width / 2, 9], [8, 6], [8, -22], [-8 - width, 6], [-8 - width, -22]];
    const boxes = corners.map(([dx, dy]) => [x + dx, y + dy, x + dx + width, y + dy + 16]);
    const cost = (box) =>
      taken.reduce((sum, other) => sum + overlap(box, other), 0) +
      (box[0] < LEFT || box[2] > RIGHT + 6 || box[1] < TOP - 8 || box[3] > BOTTOM ? 1e4 : 0);
    const best = boxes.reduce((a, b) => (cost(b) < cost(a) ? b : a));
    taken.push(best);
    return [best[0] + width / 2, best[1] + 12.5];
  });
}

function render({ model, el }) {
  const words = model.get("words");
  const groups = model.get("groups");
  const vectors = model.get("vectors");
  const names = [...new Set(groups)];
  const root = frame("mathllm-word-map", el);

  const legend = svg("svg", { viewBox: "0 0 400 20", class: "mathllm-plot", "aria-hidden": "true" }, root);
  names.forEach((name, g) => {
    const group = svg("g", { class: STYLES[g % 3] }, legend);
    const x = 50 + g * (350 / names.length);
    mark(g % 3, x, 10, group);
    svg("text", { x: x + 12, y: 14.5 }, group).textContent = name;
  });
  const picture = svg("svg", { viewBox: "0 0 400 340", class: "mathllm-plot", role: "img" }, root);
  const drawing = svg("g", {}, picture);

  const controls = html("div", "mathllm-controls", root);
  function chooser(name, value, choose) {
    const label = html("label", "mathllm-choice", controls);
    html("span", "", label, name);
    const select = html("select", "", label);
    words.forEach((word) => (html("option", "", select, word).value = word));
    select.value = value;
    select.addEventListener("change", () => choose(select.value));
    return select;
  }
  const setLandmark = (i) => (word) => {
    model.set("landmarks", model.get("landmarks").with(i, word));
    model.save_changes();
    update();
  };
  const landmarks = ["across: distance from", "up: distance from"].map((name, i) =>
    chooser(name, model.get("landmarks")[i], setLandmark(i)),
  );
  let chosen = words[0];
  chooser("neighbours of", chosen, (word) => {
    chosen = word;
    update();
  });
  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");

  function update() {
    const [across, up] = model.get("landmarks").map((word) => distances(vectors, words.indexOf(word)));
    landmarks.forEach((select, i) => (select.value = model.get("landmarks")[i]));
    const top = Math.max(...across, ...up) * 1.08 || 1;
    const place = (x, y) => [LEFT + ((RIGHT - LEFT) * x) / top, BOTTOM - ((BOTTOM - TOP) * y) / top];

    drawing.replaceChildren();
    for (let tick = 0; tick <= top; tick += 2) {
      const [x, y] = place(tick, tick);
      const className = tick === 0 ? "mathllm-axis" : "mathllm-grid";
      svg("line", { x1: x, x2: x, y1: BOTTOM, y2: TOP, class: className }, drawing);
      svg("line", { x1: LEFT, x2: RIGHT, y1: y, y2: y, class: className }, drawing);
      svg("text", { x, y: BOTTOM + 16, "text-anchor": "middle" }, drawing).textContent = tick;
      if (tick) svg("text", { x: LEFT - 7, y: y + 4, "text-anchor": "end" }, drawing).textContent = tick;
    }
    const [endX, endY] = place(top, top);
    const diagonal = { x1: LEFT, y1: BOTTOM, x2: endX, y2: endY, class: "mathllm-axis", "stroke-dasharray": "4 5" };
    svg("line", diagonal, drawing);
    const [first, second] = model.get("landmarks");
    const middle = { x: (LEFT + RIGHT) / 2, y: BOTTOM + 34, "text-anchor": "middle" };
    svg("text", middle, drawing).textContent = `distance from “${first}”`;
    const side = { transform: `translate(13 ${(TOP + BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" };
    svg("text", side, drawing).textContent = `distance from “${second}”`;

    const points = words.map((_, i) => place(across[i], up[i]));
    const labels = placeLabels(points, words);
    points.forEach(([x, y], i) => {
      const shape = names.indexOf(groups[i]) % 3;
      const group = svg("g", { class: STYLES[shape] }, drawing);
      mark(shape, x, y, group);
      const weight = words[i] === chosen ? 700 : 400;
      const label = { x: labels[i][0], y: labels[i][1], "text-anchor": "middle", "font-weight": weight };
      svg("text", label, group).textContent = words[i];
    });
    picture.setAttribute(
      "aria-label",
      `Map of distances from ${first} and from ${second}. ` +
        words.map((word, i) => `${word}: ${across[i].toFixed(1)} and ${up[i].toFixed(1)}`).join("; "),
    );

    const far = distances(vectors, words.indexOf(chosen));
    readout.replaceChildren();
    const row = html("div", "mathllm-row", readout);
    html("span", "mathllm-name", row, `nearest to “${chosen}” first:`);
    for (const j of neighbours(vectors, words.indexOf(chosen))) {
      html("span", "mathllm-formula", row, `${words[j]} ${far[j].toFixed(2)}`);
    }
  }

  model.on("change:landmarks", update);
  update();
  return () => model.off("change:landmarks", update);
}

export default { render };
