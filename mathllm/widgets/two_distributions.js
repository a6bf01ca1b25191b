// p is the world, q is a belief about it. The surprise of believing q is that of the world itself plus a divergence.

export function shares(weights) {
  const total = sum(weights);
  return weights.map((w) => w / total);
}

// The mean over p of −log q, in units of ln(base); infinite where q rules out what p allows.
export function crossEntropy(p, q, base = Math.E) {
  return sum(p.map((share, i) => (share > 0 ? -share * Math.log(q[i]) : 0))) / Math.log(base);
}

export function entropy(p, base = Math.E) {
  return crossEntropy(p, p, base);
}

export function klDivergence(p, q, base = Math.E) {
  const surprise = sum(p.map((share, i) => (share > 0 ? share * Math.log(share / q[i]) : 0)));
  return Math.max(surprise, 0) / Math.log(base);
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

function drawShares(picture, labels) {
  return labels.map((label, i) => {
    const y = 4 + i * ROW;
    svg("text", { x: LEFT - 8, y: y + 22, "text-anchor": "end" }, picture, label);
    return ["a", "b"].map((colour, k) => {
      const bar = { x: LEFT, y: y + 18 * k, height: 16 };
      svg("rect", { ...bar, width: RIGHT - LEFT, class: "mathllm-track" }, picture);
      const value = svg("text", { x: RIGHT + 8, y: bar.y + 13 }, picture);
      return { bar: svg("rect", { ...bar, class: `mathllm-${colour}` }, picture), value };
    });
  });
}

// H(p, q) is H(p) and behind it KL(p‖q); likewise with p and q exchanged.
function drawSums(picture, top) {
  return ["H(p, q) =", "H(q, p) ="].map((name, k) => {
    const bar = { x: LEFT, y: top + 22 + k * 44, height: 20 };
    svg("text", { x: LEFT - 8, y: bar.y + 15, "text-anchor": "end" }, picture, name);
    svg("rect", { ...bar, width: RIGHT - LEFT, class: "mathllm-track" }, picture);
    return {
      own: svg("rect", { ...bar, class: `mathllm-${"ab"[k]}` }, picture),
      more: svg("rect", { ...bar, class: "mathllm-c" }, picture),
      value: svg("text", { x: RIGHT + 8, y: bar.y + 15 }, picture),
      caption: svg("text", { x: LEFT, y: bar.y - 5 }, picture),
    };
  });
}

function render({ model, el }) {
  const labels = model.get("labels");
  const figure = new Figure("mathllm-two-distributions", model, el);
  const top = ROW * labels.length + 10;
  const picture = figure.picture(`0 0 400 ${top + 108}`, "32rem");
  const rows = drawShares(picture, labels);
  const sums = drawSums(picture, top);
  for (const [trait, who] of [["p", "true p"], ["q", "predicted q"]]) {
    labels.forEach((word, i) => {
      const write = (value) => model.set(trait, changed(model.get(trait), i, value));
      figure.slider(`${who}: “${word}”`, [0, 10, 0.1], { read: () => model.get(trait)[i], write }, (w) => w.toFixed(1));
    });
  }
  const readout = figure.readout();
  labels.forEach((word, i) => {
    const certain = labels.map((_, j) => (i === j ? 10 : 0));
    figure.button(`“${word}” came`, () => model.set("p", certain));
  });
  figure.button("Swap p and q", () => {
    const [p, q] = figure.get("p", "q");
    model.set("p", q);
    model.set("q", p);
  });
  figure.button("Nats or bits", () => model.set("unit", model.get("unit") === "nats" ? "bits" : "nats"));

  function drawSum({ own, more, value, caption }, [world, belief], [w, b], unit) {
    const [H, KL] = [entropy(world, BASES[unit]), klDivergence(world, belief, BASES[unit])];
    const width = (amount) => Math.min((amount * Math.log(BASES[unit])) / FULL, 1) * (RIGHT - LEFT);
    set(own, { width: width(H) });
    set(more, { x: LEFT + width(H), width: Math.min(width(KL), RIGHT - LEFT - width(H)) });
    value.textContent = format(H + KL);
    caption.textContent = `H(${w}) ${format(H)} + KL(${w}‖${b}) ${format(KL)}  ${unit}`;
    return caption.textContent;
  }

  function draw() {
    const [p, q, unit] = [shares(model.get("p")), shares(model.get("q")), model.get("unit")];
    rows.forEach((pair, i) =>
      [p, q].forEach((all, k) => {
        set(pair[k].bar, { width: all[i] * (RIGHT - LEFT) });
        pair[k].value.textContent = `${"pq"[k]} ${all[i].toFixed(3)}`;
      }),
    );
    const captions = [drawSum(sums[0], [p, q], "pq", unit), drawSum(sums[1], [q, p], "qp", unit)];
    const H = crossEntropy(p, q, BASES[unit]);
    const power = `${unit === "bits" ? "2" : "e"}^${format(H)} = ${perplexity(H, BASES[unit]).toFixed(2)}`;
    readout.textContent = `Perplexity of q in the world p: ${Number.isFinite(H) ? power : "∞"}`;
    const parts = labels.map((label, i) => `${label} ${p[i].toFixed(2)} and ${q[i].toFixed(2)}`);
    return `p and q: ${parts.join(", ")}. ${captions.join("; ")}.`;
  }

  return figure.follow(["p", "q", "unit"], draw);
}

export default { render };
