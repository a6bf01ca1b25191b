// p is the world, q is a belief about it. The surprise of believing q is that of the world itself plus a divergence.

export function shares(weights) {
  const sum = weights.reduce((total, w) => total + w, 0);
  return weights.map((w) => w / sum);
}

// The mean over p of −log q, in units of ln(base); infinite where q rules out what p allows.
export function crossEntropy(p, q, base = Math.E) {
  let sum = 0;
  p.forEach((share, i) => {
    if (share > 0) sum -= share * Math.log(q[i]);
  });
  return sum / Math.log(base) + 0;
}

export function entropy(p, base = Math.E) {
  return crossEntropy(p, p, base);
}

export function klDivergence(p, q, base = Math.E) {
  let sum = 0;
  p.forEach((share, i) => {
    if (share > 0) sum += share * Math.log(share / q[i]);
  });
  return Math.max(sum, 0) / Math.log(base);
}

// base to the power of H: the same number whatever the base, if it is the base of H.
export function perplexity(H, base) {
  return Math.exp(H * Math.log(base));
}

// Weights with the i-th changed, except that the last one standing does not go to zero.
export function changed(weights, i, value) {
  const next = weights.map((w, j) => (j === i ? value : w));
  return next.some((w) => w > 0) ? next : weights;
}

function format(value) {
  return Number.isFinite(value) ? value.toFixed(3) : "∞";
}

const BASES = { nats: Math.E, bits: 2 };
const [LEFT, RIGHT, ROW] = [84, 338, 44];
const FULL = 3; // nats that fit into a bar

function render({ model, el }) {
  const labels = model.get("labels");
  const root = frame("mathllm-two-distributions", el);
  const top = ROW * labels.length + 10;
  const picture = svg("svg", { viewBox: `0 0 400 ${top + 108}`, class: "mathllm-plot", role: "img" }, root);
  const rows = labels.map((label, i) => {
    const y = 4 + i * ROW;
    svg("text", { x: LEFT - 8, y: y + 22, "text-anchor": "end" }, picture).textContent = label;
    return ["a", "b"].map((colour, k) => {
      svg("rect", { x: LEFT, y: y + 18 * k, width: RIGHT - LEFT, height: 16, class: "mathllm-track" }, picture);
      const bar = svg("rect", { x: LEFT, y: y + 18 * k, height: 16, class: `mathllm-${colour}` }, picture);
      return { bar, value: svg("text", { x: RIGHT + 8, y: y + 18 * k + 13 }, picture) };
    });
  });
  const sums = ["H(p, q) =", "H(q, p) ="].map((name, k) => {
    const y = top + 22 + k * 44;
    svg("text", { x: LEFT - 8, y: y + 15, "text-anchor": "end" }, picture).textContent = name;
    svg("rect", { x: LEFT, y, width: RIGHT - LEFT, height: 20, class: "mathllm-track" }, picture);
    return {
      own: svg("rect", { x: LEFT, y, height: 20, class: `mathllm-${k ? "b" : "a"}` }, picture),
      more: svg("rect", { y, height: 20, class: "mathllm-c" }, picture),
      value: svg("text", { x: RIGHT + 8, y: y + 15 }, picture),
      caption: svg("text", { x: LEFT, y: y - 5 }, picture),
    };
  });

  const controls = html("div", "mathllm-controls", root);
  const refresh = [];
  for (const [trait, who] of [["p", "true p"], ["q", "predicted q"]]) {
    labels.forEach((word, i) => {
      const label = html("label", "", controls);
      html("span", "", label, `${who}: “${word}”`);
      const input = html("input", "", label);
      Object.assign(input, { type: "range", min: 0, max: 10, step: 0.1 });
      const output = html("output", "", label);
      input.addEventListener("input", () => set({ [trait]: changed(model.get(trait), i, Number(input.value)) }));
      refresh.push(() => {
        input.value = model.get(trait)[i];
        output.textContent = model.get(trait)[i].toFixed(1);
      });
    });
  }

  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const words = html("div", "mathllm-row", readout);
  const buttons = html("div", "mathllm-buttons", root);
  const certain = labels.map((word, i) => [`“${word}” came`, () => ({ p: labels.map((_, j) => (i === j ? 10 : 0)) })]);
  const actions = [
    ...certain,
    ["Swap p and q", () => ({ p: model.get("q"), q: model.get("p") })],
    ["Nats or bits", () => ({ unit: model.get("unit") === "nats" ? "bits" : "nats" })],
  ];
  for (const [name, change] of actions) {
    const button = html("button", "mathllm-button", buttons, name);
    button.type = "button";
    button.addEventListener("click", () => set(change()));
  }

  function set(changes) {
    for (const [trait, value] of Object.entries(changes)) model.set(trait, value);
    model.save_changes();
    update();
  }

  function update() {
    const [p, q, unit] = [shares(model.get("p")), shares(model.get("q")), model.get("unit")];
    const base = BASES[unit];
    rows.forEach((pair, i) =>
      [p, q].forEach((shown, k) => {
        pair[k].bar.setAttribute("width", shown[i] * (RIGHT - LEFT));
        pair[k].value.textContent = `${k ? "q" : "p"} ${shown[i].toFixed(3)}`;
      }),
    );
    const width = (amount) => Math.min((amount * Math.log(base)) / FULL, 1) * (RIGHT - LEFT);
    [[p, q, "p", "q"], [q, p, "q", "p"]].forEach(([world, belief, w, b], k) => {
      const [own, more] = [entropy(world, base), klDivergence(world, belief, base)];
      const start = width(own);
      sums[k].own.setAttribute("width", start);
      sums[k].more.setAttribute("x", LEFT + start);
      sums[k].more.setAttribute("width", Math.min(width(more), RIGHT - LEFT - start));
      sums[k].value.textContent = format(own + more);
      sums[k].caption.textContent = `H(${w}) ${format(own)} + KL(${w}‖${b}) ${format(more)}  ${unit}`;
    });
    const H = crossEntropy(p, q, base);
    const power = unit === "bits" ? "2" : "e";
    const choices = Number.isFinite(H) ? `${power}^${format(H)} = ${perplexity(H, base).toFixed(2)}` : "∞";
    words.textContent = `Perplexity of q in the world p: ${choices}`;
    refresh.forEach((show) => show());
    const parts = labels.map((label, i) => `${label} ${p[i].toFixed(2)} and ${q[i].toFixed(2)}`).join(", ");
    picture.setAttribute("aria-label", `p and q: ${parts}. ${sums.map((sum) => sum.caption.textContent).join("; ")}.`);
  }

  const traits = ["p", "q", "unit"].map((name) => `change:${name}`);
  traits.forEach((name) => model.on(name, update));
  update();
  return () => traits.forEach((name) => model.off(name, update));
}

export default { render };
