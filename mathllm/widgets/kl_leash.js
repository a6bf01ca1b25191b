// Reward minus β times the divergence from the reference: the best policy reweights what the reference would do.

export function optimum(reference, reward, beta) {
  return softmax(reference.map((p, i) => Math.log(p) + reward[i] / beta));
}

export function divergence(p, q) {
  return sum(p.map((share, i) => (share > 0 ? share * Math.log(share / q[i]) : 0)));
}

export function mean(p, values) {
  return sum(p.map((share, i) => share * values[i]));
}

// For each β its best policy: how far it strayed, what it is paid, and what that is worth: [KL, reward, truth].
export function path(reference, reward, truth, betas) {
  return betas.map((beta) => {
    const best = optimum(reference, reward, beta);
    return [divergence(best, reference), mean(best, reward), mean(best, truth)];
  });
}

const [LEFT, RIGHT, ROW, HIGH] = [84, 338, 40, 150]; // HIGH: of the curves
const GRID = Array.from({ length: 121 }, (_, i) => 10 ** (1 - i / 60)); // from β = 10 to β = 0.1

// A pale bar for what the reference would do, and a full one for the best policy, which the result sets.
function drawBars(picture, answers, reference) {
  return answers.map((answer, i) => {
    const y = 4 + i * ROW;
    svg("text", { x: LEFT - 8, y: y + 20, "text-anchor": "end" }, picture, answer);
    const width = reference[i] * (RIGHT - LEFT);
    svg("rect", { x: LEFT, y, width, height: 12, class: "mathllm-a mathllm-pale" }, picture);
    const bar = svg("rect", { x: LEFT, y: y + 13, width: 0, height: 17, class: "mathllm-a" }, picture);
    const value = svg("text", { x: RIGHT + 8, y: y + 26 }, picture);
    return (share) => (set(bar, { width: share * (RIGHT - LEFT) }), (value.textContent = share.toFixed(3)));
  });
}

// Reward and truth over the divergence, for all β; returns what moves the dots on them.
function drawCurves(picture, curves, deep) {
  const heights = curves.flatMap(([, gain, worth]) => [gain, worth]);
  const [low, up] = [Math.min(...heights), Math.max(...heights)];
  const far = Math.max(...curves.map(([kl]) => kl)) || 1;
  const right = RIGHT - 22;
  const across = (kl) => LEFT + (kl / far) * (right - LEFT);
  const upward = (value) => deep - ((value - low) / (up - low || 1)) * HIGH;
  svg("line", { x1: LEFT, y1: deep + 6, x2: RIGHT, y2: deep + 6, class: "mathllm-axis" }, picture);
  svg("line", { x1: LEFT, y1: deep + 6, x2: LEFT, y2: deep - HIGH - 6, class: "mathllm-axis" }, picture);
  svg("text", { x: LEFT, y: deep + 26, class: "mathllm-title" }, picture, "0");
  svg("text", { x: (LEFT + RIGHT) / 2, y: deep + 26, "text-anchor": "middle" }, picture, "KL from the reference");
  svg("text", { x: LEFT - 8, y: deep - HIGH + 4, "text-anchor": "end" }, picture, up.toFixed(1));
  svg("text", { x: LEFT - 8, y: deep + 4, "text-anchor": "end" }, picture, low.toFixed(1));
  const dots = ["reward", "truth"].map((word, k) => {
    const colour = { class: `mathllm-${"ab"[k]}` };
    const points = curves.map((point) => `${across(point[0])},${upward(point[k + 1])}`).join(" ");
    svg("polyline", { ...colour, points, style: "fill: none", "stroke-width": 1.6 }, picture);
    svg("text", { ...colour, x: right + 10, y: upward(curves.at(-1)[k + 1]) + 4 }, picture, word);
    return svg("circle", { ...colour, r: 5 }, picture);
  });
  return ([kl, ...values]) => dots.forEach((dot, k) => set(dot, { cx: across(kl), cy: upward(values[k]) }));
}

function render({ model, el }) {
  const figure = new Figure("mathllm-kl-leash", model, el);
  const [answers, reference, reward, truth] = figure.get("answers", "reference", "reward", "truth");
  html("div", "mathllm-name", figure.root, "pale: the reference; full: the best policy for this β");
  const deep = ROW * answers.length + HIGH + 52;
  const picture = figure.picture(`0 0 400 ${deep + 40}`);
  const bars = drawBars(picture, answers, reference);
  const move = drawCurves(picture, path(reference, reward, truth, GRID), deep);
  const beta = {
    read: () => Math.log10(model.get("beta")),
    write: (exponent) => model.set("beta", Math.min(10, Math.max(0.1, 10 ** exponent))),
  };
  figure.slider("price of straying β", [-1, 1, 0.02], beta, () => model.get("beta").toFixed(2));
  const readout = figure.readout();

  function draw() {
    const beta = model.get("beta");
    const best = optimum(reference, reward, beta);
    const [point] = path(reference, reward, truth, [beta]);
    const [kl, gain, worth] = point;
    bars.forEach((show, i) => show(best[i]));
    move(point);
    const [paid, price, far, left, earned] = [gain, beta, kl, gain - beta * kl, worth].map((x) => x.toFixed(2));
    readout.textContent = `reward ${paid} − ${price} · KL ${far} = ${left}; true reward ${earned}`;
    const shares = answers.map((answer, i) => `${answer} ${best[i].toFixed(3)}`).join(", ");
    return `Best policy: ${shares}. ${readout.textContent}.`;
  }

  return figure.follow(["beta"], draw);
}

export default { render };
