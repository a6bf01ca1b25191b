// Reward minus β times the divergence from the reference: the best policy reweights what the reference would do.

export function optimum(reference, reward, beta) {
  const scores = reference.map((p, i) => Math.log(p) + reward[i] / beta);
  const largest = Math.max(...scores);
  const weights = scores.map((score) => Math.exp(score - largest));
  const sum = weights.reduce((total, w) => total + w, 0);
  return weights.map((w) => w / sum);
}

export function divergence(p, q) {
  return p.reduce((total, share, i) => total + (share > 0 ? share * Math.log(share / q[i]) : 0), 0);
}

export function mean(p, values) {
  return p.reduce((total, share, i) => total + share * values[i], 0);
}

// For each β its best policy: how far it strayed, what it is paid, and what that is worth: [KL, reward, truth].
export function path(reference, reward, truth, betas) {
  return betas.map((beta) => {
    const best = optimum(reference, reward, beta);
    return [divergence(best, reference), mean(best, reward), mean(best, truth)];
  });
}

const [LEFT, RIGHT, ROW] = [84, 338, 40];
const GRID = Array.from({ length: 121 }, (_, i) => 10 ** (1 - i / 60)); // from β = 10 to β = 0.1

function render({ model, el }) {
  const [answers, reference, reward, truth] = ["answers", "reference", "reward", "truth"].map((name) => model.get(name));
  const root = frame("mathllm-kl-leash", el);
  const legend = html("div", "mathllm-name", root, "pale: the reference; full: the best policy for this β");
  legend.setAttribute("aria-hidden", "true");
  const top = ROW * answers.length + 26;
  const [high, deep] = [150, top + 176];
  const picture = svg("svg", { viewBox: `0 0 400 ${deep + 40}`, class: "mathllm-plot", role: "img" }, root);
  const bars = answers.map((answer, i) => {
    const y = 4 + i * ROW;
    svg("text", { x: LEFT - 8, y: y + 20, "text-anchor": "end" }, picture).textContent = answer;
    const width = reference[i] * (RIGHT - LEFT);
    svg("rect", { x: LEFT, y, width, height: 12, class: "mathllm-a mathllm-pale" }, picture);
    const bar = svg("rect", { x: LEFT, y: y + 13, width: 0, height: 17, class: "mathllm-a" }, picture);
    return { bar, value: svg("text", { x: RIGHT + 8, y: y + 26 }, picture) };
  });

  const curves = path(reference, reward, truth, GRID);
  const heights = curves.flatMap(([, gain, worth]) => [gain, worth]);
  const [low, up] = [Math.min(...heights), Math.max(...heights)];
  const far = Math.max(...curves.map(([kl]) => kl)) || 1;
  const right = RIGHT - 22;
  const across = (kl) => LEFT + (kl / far) * (right - LEFT);
  const upward = (value) => deep - ((value - low) / (up - low || 1)) * high;
  svg("line", { x1: LEFT, y1: deep + 6, x2: RIGHT, y2: deep + 6, class: "mathllm-axis" }, picture);
  svg("line", { x1: LEFT, y1: deep + 6, x2: LEFT, y2: deep - high - 6, class: "mathllm-axis" }, picture);
  svg("text", { x: LEFT, y: deep + 26, class: "mathllm-title" }, picture).textContent = "0";
  const name = svg("text", { x: (LEFT + RIGHT) / 2, y: deep + 26, "text-anchor": "middle" }, picture);
  name.textContent = "KL from the reference";
  svg("text", { x: LEFT - 8, y: deep - high + 4, "text-anchor": "end" }, picture).textContent = up.toFixed(1);
  svg("text", { x: LEFT - 8, y: deep + 4, "text-anchor": "end" }, picture).textContent = low.toFixed(1);
  const dots = [["a", 1, "reward"], ["b", 2, "truth"]].map(([colour, k, word]) => {
    const points = curves.map((point) => `${across(point[0])},${upward(point[k])}`).join(" ");
    svg("polyline", { points, class: `mathllm-${colour}`, style: "fill: none", "stroke-width": 1.6 }, picture);
    const end = curves[curves.length - 1];
    const attributes = { x: right + 10, y: upward(end[k]) + 4, class: `mathllm-${colour}` };
    svg("text", attributes, picture).textContent = word;
    return svg("circle", { r: 5, class: `mathllm-${colour}` }, picture);
  });

  const controls = html("div", "mathllm-controls", root);
  const label = html("label", "", controls);
  html("span", "", label, "price of straying β");
  const input = html("input", "", label);
  Object.assign(input, { type: "range", min: -1, max: 1, step: 0.02 });
  const output = html("output", "", label);
  input.addEventListener("input", () => {
    model.set("beta", Math.min(10, Math.max(0.1, 10 ** Number(input.value))));
    model.save_changes();
    update();
  });
  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");

  function update() {
    const beta = model.get("beta");
    const best = optimum(reference, reward, beta);
    const [[kl, gain, worth]] = path(reference, reward, truth, [beta]);
    bars.forEach(({ bar, value }, i) => {
      bar.setAttribute("width", best[i] * (RIGHT - LEFT));
      value.textContent = best[i].toFixed(3);
    });
    dots.forEach((dot, k) => {
      dot.setAttribute("cx", across(kl));
      dot.setAttribute("cy", upward(k ? worth : gain));
    });
    input.value = Math.log10(beta);
    output.textContent = beta.toFixed(2);
    input.setAttribute("aria-valuetext", `β = ${beta.toFixed(2)}`);
    const sums = `reward ${gain.toFixed(2)} − ${beta.toFixed(2)} · KL ${kl.toFixed(2)} = ${(gain - beta * kl).toFixed(2)}`;
    readout.textContent = `${sums}; true reward ${worth.toFixed(2)}`;
    const shares = answers.map((answer, i) => `${answer} ${best[i].toFixed(3)}`).join(", ");
    picture.setAttribute("aria-label", `Best policy: ${shares}. ${readout.textContent}.`);
  }

  model.on("change:beta", update);
  update();
  return () => model.off("change:beta", update);
}

export default { render };
