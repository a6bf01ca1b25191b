// Temperature first, then the k most probable, then the nucleus: what generate() does before it draws.

export function softmax(logits, temperature) {
  const largest = Math.max(...logits);
  const exponentials = logits.map((z) => Math.exp((z - largest) / temperature));
  const sum = exponentials.reduce((total, e) => total + e, 0);
  return exponentials.map((e) => e / sum);
}

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
  const mass = kept.reduce((total, share) => total + share, 0);
  return logits.map((_, i) => (i < kept.length ? kept[i] / mass : 0));
}

const [LEFT, RIGHT, ROW] = [96, 330, 19];

function render({ model, el }) {
  const [tokens, logits] = [model.get("tokens"), model.get("logits")];
  const root = frame("mathllm-sampling-filters", el);
  const legend = html("div", "mathllm-name", root, "pale: before the cut; full: what is drawn from");
  legend.setAttribute("aria-hidden", "true");
  const height = ROW * tokens.length + 6;
  const picture = svg("svg", { viewBox: `0 0 400 ${height}`, class: "mathllm-plot", role: "img" }, root);
  const bars = tokens.map((token, i) => {
    const y = 3 + i * ROW;
    const name = svg("text", { x: LEFT - 8, y: y + 12, "text-anchor": "end" }, picture);
    name.textContent = token;
    const before = svg("rect", { x: LEFT, y, width: 0, height: ROW - 5, class: "mathllm-a mathllm-pale" }, picture);
    const after = svg("rect", { x: LEFT, y, width: 0, height: ROW - 5, class: "mathllm-a" }, picture);
    return { name, before, after, value: svg("text", { x: RIGHT + 8, y: y + 12 }, picture) };
  });

  const controls = html("div", "mathllm-controls", root);
  const sliders = [
    ["temperature", "temperature T", 0.1, 3, 0.1, (v) => v.toFixed(1)],
    ["top_k", "top-k", 1, tokens.length, 1, (v) => String(v)],
    ["top_p", "top-p", 0.05, 1, 0.05, (v) => v.toFixed(2)],
  ].map(([trait, name, min, max, step, format]) => {
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
    return { trait, input, output, format };
  });
  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");

  function update() {
    const [temperature, k, p] = sliders.map(({ trait }) => model.get(trait));
    const before = softmax(logits, temperature);
    const after = filtered(logits, temperature, k, p);
    const scale = (RIGHT - LEFT) / Math.max(...after);
    bars.forEach((bar, i) => {
      bar.before.setAttribute("width", before[i] * scale);
      bar.after.setAttribute("width", after[i] * scale);
      bar.value.textContent = after[i] ? after[i].toFixed(3) : "–";
      bar.name.setAttribute("opacity", after[i] ? 1 : 0.55);
    });
    sliders.forEach(({ trait, input, output, format }) => {
      input.value = model.get(trait);
      output.textContent = format(model.get(trait));
    });
    const count = after.filter((share) => share > 0).length;
    const mass = before.slice(0, count).reduce((total, share) => total + share, 0);
    readout.textContent = `${count} of ${tokens.length} tokens stay; before the cut they held ${mass.toFixed(3)}.`;
    const best = tokens.slice(0, Math.min(count, 5)).map((token, i) => `${token} ${after[i].toFixed(3)}`);
    picture.setAttribute("aria-label", `${readout.textContent} Best: ${best.join(", ")}.`);
  }

  const traits = sliders.map(({ trait }) => `change:${trait}`);
  traits.forEach((name) => model.on(name, update));
  update();
  return () => traits.forEach((name) => model.off(name, update));
}

export default { render };
