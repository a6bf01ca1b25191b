// RoPE on one pair: query and key turn with their positions, their dot product sees the difference of the angles.

export function turn([x, y], angle) {
  return [x * Math.cos(angle) - y * Math.sin(angle), x * Math.sin(angle) + y * Math.cos(angle)];
}

// The score of a query at position m and a key at position n that turn by `rate` radians per position.
export function score(query, key, m, n, rate) {
  const [a, b] = [turn(query, m * rate), turn(key, n * rate)];
  return a[0] * b[0] + a[1] * b[1];
}

const LAST = 30;
const [CENTRE, RADIUS] = [130, 105];

function direction(degrees) {
  return turn([1, 0], (degrees * Math.PI) / 180);
}

function render({ model, el }) {
  const root = frame("mathllm-rotary-pair", el);
  const picture = svg("svg", { viewBox: "0 0 260 260", class: "mathllm-plot", role: "img" }, root);
  svg("circle", { cx: CENTRE, cy: CENTRE, r: RADIUS, fill: "none", class: "mathllm-grid" }, picture);
  for (const [x1, y1, x2, y2] of [[15, CENTRE, 245, CENTRE], [CENTRE, 15, CENTRE, 245]]) {
    svg("line", { x1, y1, x2, y2, class: "mathllm-grid" }, picture);
  }
  const arrows = [["query", "mathllm-a", "q"], ["key", "mathllm-b", "k"]].map(([name, colour, letter]) => {
    const start = svg("line", { x1: CENTRE, y1: CENTRE, class: colour, "stroke-width": 1.5, "stroke-dasharray": "4 4" }, picture);
    const line = svg("line", { x1: CENTRE, y1: CENTRE, class: colour, "stroke-width": 3 }, picture);
    const tip = svg("circle", { r: 5, class: colour }, picture);
    const label = svg("text", { class: colour, "text-anchor": "middle" }, picture);
    label.textContent = letter;
    return { name, start, line, tip, label };
  });

  const controls = html("div", "mathllm-controls", root);
  const refresh = [
    ["position m of the query", "query_position", 0, LAST, 1, 0],
    ["position n of the key", "key_position", 0, LAST, 1, 0],
    ["turn per position (radians)", "rate", 0.01, 1, 0.01, 2],
  ].map(([name, trait, min, max, step, digits]) => {
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
    return () => {
      input.value = model.get(trait);
      output.textContent = model.get(trait).toFixed(digits);
    };
  });

  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const row = html("div", "mathllm-row", readout);
  const formula = html("span", "mathllm-formula", row);
  const value = html("strong", "mathllm-value", row);
  const buttons = html("div", "mathllm-buttons", root);
  for (const [name, step] of [["Both one place on", 1], ["Both one place back", -1]]) {
    const button = html("button", "mathllm-button", buttons, name);
    button.type = "button";
    button.addEventListener("click", () => {
      const moved = ["query_position", "key_position"].map((trait) => model.get(trait) + step);
      if (moved.some((position) => position < 0 || position > LAST)) return;
      model.set("query_position", moved[0]);
      model.set("key_position", moved[1]);
      model.save_changes();
      update();
    });
  }

  function update() {
    const rate = model.get("rate");
    const place = ([x, y], r) => [CENTRE + r * RADIUS * x, CENTRE - r * RADIUS * y];
    for (const { name, start, line, tip, label } of arrows) {
      const before = direction(model.get(`${name}_angle`));
      const after = turn(before, model.get(`${name}_position`) * rate);
      const set = (node, [x, y], names) => [x, y].forEach((number, i) => node.setAttribute(names[i], number));
      set(start, place(before, 1), ["x2", "y2"]);
      set(line, place(after, 1), ["x2", "y2"]);
      set(tip, place(after, 1), ["cx", "cy"]);
      set(label, place(after, 1.15), ["x", "y"]);
    }
    const [m, n] = [model.get("query_position"), model.get("key_position")];
    const [q, k] = [direction(model.get("query_angle")), direction(model.get("key_angle"))];
    const words = score(q, k, m, n, rate).toFixed(3).replace("-", "−");
    formula.textContent = `distance n − m = ${String(n - m).replace("-", "−")}, score (turned q)·(turned k)`;
    value.textContent = `= ${words}`;
    refresh.forEach((show) => show());
    picture.setAttribute("aria-label", `A query at position ${m} and a key at position ${n}, both turned by ` +
      `${rate.toFixed(2)} radians per position. Their dot product is ${words}. Dashed: before turning.`);
  }

  const traits = ["query_position", "key_position", "query_angle", "key_angle", "rate"].map((name) => `change:${name}`);
  traits.forEach((name) => model.on(name, update));
  update();
  return () => traits.forEach((name) => model.off(name, update));
}

export default { render };
