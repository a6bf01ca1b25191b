// A matrix, rebuilt from its first directions: each adds one column times one row, stretched by its singular value.

export function approximate(columns, sizes, rows, rank) {
  return columns[0].map((_, i) =>
    rows[0].map((_, j) => {
      let entry = 0;
      for (let k = 0; k < rank; k++) entry += sizes[k] * columns[k][i] * rows[k][j];
      return entry;
    }),
  );
}

// The share of the Frobenius norm that the first `rank` directions miss.
export function missed(sizes, rank) {
  const square = (list) => list.reduce((sum, size) => sum + size * size, 0);
  const all = square(sizes);
  return all === 0 ? 0 : Math.sqrt(square(sizes.slice(rank)) / all);
}

// How many numbers two thin factors hold.
export function kept(m, n, rank) {
  return rank * (m + n);
}

const WIDTH = 360;
const SPECTRUM = 56; // pixels for the bars below the picture

function render({ model, el }) {
  const root = frame("mathllm-rank-slider", el);
  const [columns, sizes, rows] = ["columns", "sizes", "rows"].map((trait) => model.get(trait));
  const [m, n] = [columns[0].length, rows[0].length];
  const side = WIDTH / n;
  const height = m * side;
  const size = { viewBox: `0 0 ${WIDTH} ${height + SPECTRUM + 26}`, class: "mathllm-plot", role: "img" };
  const picture = svg("svg", size, root);
  picture.style.maxWidth = "28rem";
  picture.style.margin = "0 auto";
  svg("rect", { x: 0, y: 0, width: WIDTH, height, class: "mathllm-track" }, picture);
  const dots = Array.from({ length: m }, (_, i) =>
    Array.from({ length: n }, (_, j) => {
      const box = { x: j * side, y: i * side, width: side + 0.3, height: side + 0.3 };
      return svg("rect", { ...box, fill: "currentColor", stroke: "none" }, picture);
    }),
  );
  const step = WIDTH / sizes.length;
  const bars = sizes.map((value, k) => {
    const tall = Math.max((SPECTRUM * value) / (sizes[0] || 1), 0.5);
    const box = { x: (k + 0.1) * step, y: height + 6 + SPECTRUM - tall, width: 0.8 * step, height: tall };
    return svg("rect", { ...box, stroke: "none" }, picture);
  });
  const note = svg("text", { x: WIDTH / 2, y: height + SPECTRUM + 22, "text-anchor": "middle" }, picture);
  note.textContent = "singular values, the largest first";

  const controls = html("div", "mathllm-controls", root);
  const label = html("label", "", controls);
  html("span", "", label, "directions kept");
  const input = html("input", "", label);
  Object.assign(input, { type: "range", min: 0, max: sizes.length, step: 1 });
  const output = html("output", "", label);
  input.addEventListener("input", () => {
    model.set("rank", Number(input.value));
    model.save_changes();
    update();
  });
  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const values = ["numbers in the two thin factors", "missed, as a share of the norm"].map((name) => {
    const row = html("div", "mathllm-row", readout);
    html("span", "mathllm-name", row, name);
    return html("strong", "mathllm-value", row);
  });

  function update() {
    const rank = model.get("rank");
    input.value = rank;
    output.textContent = rank;
    approximate(columns, sizes, rows, rank).forEach((row, i) =>
      row.forEach((entry, j) => dots[i][j].setAttribute("fill-opacity", Math.min(Math.max(entry, 0), 1).toFixed(3))),
    );
    bars.forEach((bar, k) => {
      bar.setAttribute("class", k < rank ? "mathllm-a" : "mathllm-track");
      bar.setAttribute("fill-opacity", 1);
    });
    values[0].textContent = `${kept(m, n, rank)} in place of ${m * n}`;
    values[1].textContent = `${(100 * missed(sizes, rank)).toFixed(1)} %`;
    picture.setAttribute(
      "aria-label",
      `A picture of ${m} by ${n} dots from ${rank} of ${sizes.length} directions; ` +
        `${(100 * missed(sizes, rank)).toFixed(0)} percent of it is missing.`,
    );
  }

  model.on("change:rank", update);
  update();
  return () => model.off("change:rank", update);
}

export default { render };
