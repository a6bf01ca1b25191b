// Temperature first, then the k most probable, then the nucleus: what generate() does before it draws.

// How many of the sorted probabilities the nucleus holds: the smallest number whose sum reaches p.
export function nucleusSize(sorted, p) {
  let mass = 0;
  for (let count = 0; count < sorted.length; count += 1) {
    mass += sorted[count];
    if (mass >= p * (1 - 1e-9)) return count + 1;
  }
  return sorted.length;
}

// The distribution that is drawn from, for logits in falling order.
export function filtered(logits, temperature, k, p) {
  const best = softmax(logits.slice(0, k), temperature);
  const kept = best.slice(0, nucleusSize(best, p));
  const mass = sum(kept);
  return logits.map((_, i) => (i < kept.length ? kept[i] / mass : 0));
}

const [LEFT, RIGHT, ROW] = [96, 330, 19];

function drawBars(picture, tokens) {
  return tokens.map((token, i) => {
    const y = 3 + i * ROW;
    const name = svg("text", { x: LEFT - 8, y: y + 12, "text-anchor": "end" }, picture, token);
    const bar = { x: LEFT, y, width: 0, height: ROW - 5 };
    const before = svg("rect", { ...bar, class: "mathllm-a mathllm-pale" }, picture);
    const after = svg("rect", { ...bar, class: "mathllm-a" }, picture);
    return { name, before, after, value: svg("text", { x: RIGHT + 8, y: y + 12 }, picture) };
  });
}

function render({ model, el }) {
  const figure = new Figure("mathllm-sampling-filters", model, el);
  const [tokens, logits] = figure.get("tokens", "logits");
  html("div", "mathllm-name", figure.root, "pale: before the cut; full: what is drawn from");
  const bars = drawBars(figure.picture(`0 0 400 ${ROW * tokens.length + 6}`), tokens);
  figure.slider("temperature T", [0.1, 3, 0.1], "temperature", (T) => T.toFixed(1));
  figure.slider("top-k", [1, tokens.length, 1], "top_k");
  figure.slider("top-p", [0.05, 1, 0.05], "top_p", (p) => p.toFixed(2));
  const readout = figure.readout();

  function draw() {
    const [temperature, k, p] = figure.get("temperature", "top_k", "top_p");
    const before = softmax(logits, temperature);
    const after = filtered(logits, temperature, k, p);
    const scale = (RIGHT - LEFT) / Math.max(...after);
    bars.forEach((bar, i) => {
      set(bar.before, { width: before[i] * scale });
      set(bar.after, { width: after[i] * scale });
      bar.value.textContent = after[i] ? after[i].toFixed(3) : "–";
      set(bar.name, { opacity: after[i] ? 1 : 0.55 });
    });
    const count = after.filter((share) => share > 0).length;
    const mass = sum(before.slice(0, count));
    readout.textContent = `${count} of ${tokens.length} tokens stay; before the cut they held ${mass.toFixed(3)}.`;
    const best = tokens.slice(0, Math.min(count, 5)).map((token, i) => `${token} ${after[i].toFixed(3)}`);
    return `${readout.textContent} Best: ${best.join(", ")}.`;
  }

  return figure.follow(["temperature", "top_k", "top_p"], draw);
}

export default { render };
