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
  const square = (list) => sum(list.map((size) => size * size));
  const all = square(sizes);
  return all === 0 ? 0 : Math.sqrt(square(sizes.slice(rank)) / all);
}

// How many numbers two thin factors hold.
export function kept(m, n, rank) {
  return rank * (m + n);
}

const WIDTH = 360;
const SPECTRUM = 56; // pixels for the bars below the picture

function drawDots(picture, m, n) {
  const side = WIDTH / n;
  svg("rect", { x: 0, y: 0, width: WIDTH, height: m * side, class: "mathllm-track" }, picture);
  return Array.from({ length: m }, (_, i) =>
    Array.from({ length: n }, (_, j) => {
      const box = { x: j * side, y: i * side, width: side + 0.3, height: side + 0.3 };
      return svg("rect", { ...box, fill: "currentColor", stroke: "none" }, picture);
    }),
  );
}

function drawSpectrum(picture, sizes, foot) {
  const step = WIDTH / sizes.length;
  const note = { x: WIDTH / 2, y: foot + 16, "text-anchor": "middle" };
  svg("text", note, picture, "singular values, the largest first");
  return sizes.map((value, k) => {
    const height = Math.max((SPECTRUM * value) / (sizes[0] || 1), 0.5);
    return svg("rect", { x: (k + 0.1) * step, y: foot - height, width: 0.8 * step, height, stroke: "none" }, picture);
  });
}

function render({ model, el }) {
  const figure = new Figure("mathllm-rank-slider", model, el);
  const [columns, sizes, rows] = figure.get("columns", "sizes", "rows");
  const [m, n] = [columns[0].length, rows[0].length];
  const foot = (m * WIDTH) / n + SPECTRUM + 6;
  const picture = figure.picture(`0 0 ${WIDTH} ${foot + 20}`, "28rem");
  const dots = drawDots(picture, m, n);
  const bars = drawSpectrum(picture, sizes, foot);
  figure.slider("directions kept", [0, sizes.length, 1], "rank");
  const [numbers, error] = figure.rows(["numbers in the two thin factors", "missed, as a share of the norm"]);

  function draw() {
    const rank = model.get("rank");
    approximate(columns, sizes, rows, rank).forEach((row, i) =>
      row.forEach((entry, j) => set(dots[i][j], { "fill-opacity": Math.min(Math.max(entry, 0), 1).toFixed(3) })),
    );
    bars.forEach((bar, k) => set(bar, { class: k < rank ? "mathllm-a" : "mathllm-track" }));
    const percent = 100 * missed(sizes, rank);
    numbers.value.textContent = `${kept(m, n, rank)} in place of ${m * n}`;
    error.value.textContent = `${percent.toFixed(1)} %`;
    const directions = `${rank} of ${sizes.length} directions`;
    return `A picture of ${m} by ${n} dots from ${directions}; ${percent.toFixed(0)} percent of it is missing.`;
  }

  return figure.follow(["rank"], draw);
}

export default { render };
