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

const place = ([x, y], r = 1) => [CENTRE + r * RADIUS * x, CENTRE - r * RADIUS * y];

function direction(degrees) {
  return turn([1, 0], (degrees * Math.PI) / 180);
}

// A dashed line where an arrow starts from, a full one where it is now; returns what turns it.
function drawArrow(picture, colour, letter) {
  const from = { x1: CENTRE, y1: CENTRE, class: colour };
  const start = svg("line", { ...from, "stroke-width": 1.5, "stroke-dasharray": "4 4" }, picture);
  const line = svg("line", { ...from, "stroke-width": 3 }, picture);
  const tip = svg("circle", { r: 5, class: colour }, picture);
  const label = svg("text", { class: colour, "text-anchor": "middle" }, picture, letter);
  return (before, after) => {
    const [[x0, y0], [x2, y2], [x, y]] = [place(before), place(after), place(after, 1.15)];
    set(start, { x2: x0, y2: y0 });
    set(line, { x2, y2 });
    set(tip, { cx: x2, cy: y2 });
    set(label, { x, y });
  };
}

function render({ model, el }) {
  const figure = new Figure("mathllm-rotary-pair", model, el);
  const picture = figure.picture("0 0 260 260", "18rem");
  svg("circle", { cx: CENTRE, cy: CENTRE, r: RADIUS, fill: "none", class: "mathllm-grid" }, picture);
  svg("path", { d: `M 15 ${CENTRE} H 245 M ${CENTRE} 15 V 245`, class: "mathllm-grid" }, picture);
  const turnQuery = drawArrow(picture, "mathllm-a", "q");
  const turnKey = drawArrow(picture, "mathllm-b", "k");
  figure.slider("position m of the query", [0, LAST, 1], "query_position");
  figure.slider("position n of the key", [0, LAST, 1], "key_position");
  figure.slider("turn per position (radians)", [0.01, 1, 0.01], "rate", (rate) => rate.toFixed(2));
  const [row] = figure.rows([""]);
  for (const [name, step] of [["Both one place on", 1], ["Both one place back", -1]]) {
    figure.button(name, () => {
      const [m, n] = figure.get("query_position", "key_position").map((position) => position + step);
      if (Math.min(m, n) < 0 || Math.max(m, n) > LAST) return;
      model.set("query_position", m);
      model.set("key_position", n);
    });
  }

  function draw() {
    const [m, n, rate] = figure.get("query_position", "key_position", "rate");
    const [q, k] = [direction(model.get("query_angle")), direction(model.get("key_angle"))];
    turnQuery(q, turn(q, m * rate));
    turnKey(k, turn(k, n * rate));
    const product = fixed(score(q, k, m, n, rate), 3);
    row.formula.textContent = `distance n − m = ${fixed(n - m, 0)}, score (turned q)·(turned k)`;
    row.value.textContent = `= ${product}`;
    const turned = `both turned by ${rate.toFixed(2)} radians per position`;
    return (
      `A query at position ${m} and a key at position ${n}, ${turned}. Their dot product is ${product}. ` +
      "Dashed: before turning."
    );
  }

  return figure.follow(["query_position", "key_position", "query_angle", "key_angle", "rate"], draw);
}

export default { render };
