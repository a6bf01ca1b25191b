// Scores become probabilities. Differences of scores count, a common shift does not, the temperature scales them.

export function softmax(logits, temperature = 1) {
  const largest = Math.max(...logits);
  const exponentials = logits.map((z) => Math.exp((z - largest) / temperature));
  const sum = exponentials.reduce((total, e) => total + e, 0);
  return exponentials.map((e) => e / sum);
}

// How many times as likely the first candidate is as the second: e to the difference of their scores over T.
export function ratio(first, second, temperature = 1) {
  return Math.exp((first - second) / temperature);
}

// Every score raised by `step`, as far as no slider leaves its range: then all stay, so that differences stay.
export function raised(logits, step, [low, high]) {
  return logits.some((z) => z + step < low || z + step > high) ? logits : logits.map((z) => z + step);
}

const RANGE = [-5, 10];
const [LEFT, RIGHT, ROW] = [84, 330, 34];

function render({ model, el }) {
  const labels = model.get("labels");
  const root = frame("mathllm-softmax-bars", el);
  const height = ROW * labels.length + 8;
  const picture = svg("svg", { viewBox: `0 0 400 ${height}`, class: "mathllm-plot", role: "img" }, root);
  const bars = labels.map((label, i) => {
    const y = 6 + i * ROW;
    svg("text", { x: LEFT - 8, y: y + 17, "text-anchor": "end" }, picture).textContent = label;
    svg("rect", { x: LEFT, y, width: RIGHT - LEFT, height: 24, class: "mathllm-track" }, picture);
    const bar = svg("rect", { x: LEFT, y, width: 0, height: 24, class: "mathllm-a" }, picture);
    return { bar, value: svg("text", { x: RIGHT + 8, y: y + 17 }, picture) };
  });

  const controls = html("div", "mathllm-controls", root);
  function slider(name, min, max, step, read, write) {
    const label = html("label", "", controls);
    html("span", "", label, name);
    const input = html("input", "", label);
    Object.assign(input, { type: "range", min, max, step });
    const output = html("output", "", label);
    input.addEventListener("input", () => {
      write(Number(input.value));
      model.save_changes();
      update();
    });
    return () => {
      input.value = read();
      output.textContent = read().toFixed(1).replace("-", "−");
    };
  }
  const refresh = labels.map((label, i) =>
    slider(`score of “${label}”`, ...RANGE, 0.1, () => model.get("logits")[i], (value) =>
      model.set("logits", model.get("logits").with(i, value)),
    ),
  );
  refresh.push(
    slider("temperature T", 0.1, 10, 0.1, () => model.get("temperature"), (value) => model.set("temperature", value)),
  );

  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const row = html("div", "mathllm-row", readout);
  const formula = html("span", "mathllm-formula", row);
  const value = html("strong", "mathllm-value", row);
  const buttons = html("div", "mathllm-buttons", root);
  for (const [name, step] of [["Raise all by 1", 1], ["Lower all by 1", -1]]) {
    const button = html("button", "mathllm-button", buttons, name);
    button.type = "button";
    button.addEventListener("click", () => {
      model.set("logits", raised(model.get("logits"), step, RANGE));
      model.save_changes();
      update();
    });
  }

  function update() {
    const [logits, temperature] = [model.get("logits"), model.get("temperature")];
    const p = softmax(logits, temperature);
    bars.forEach(({ bar, value: text }, i) => {
      bar.setAttribute("width", p[i] * (RIGHT - LEFT));
      text.textContent = p[i].toFixed(3);
    });
    refresh.forEach((show) => show());
    if (labels.length > 1) {
      const difference = (logits[0] - logits[1]).toFixed(1).replace("-", "−");
      formula.textContent = `“${labels[0]}” : “${labels[1]}” = e^(${difference} / ${temperature.toFixed(1)})`;
      const times = ratio(logits[0], logits[1], temperature);
      value.textContent = `= ${times < 1e4 ? times.toPrecision(3) : "more than 10,000"}`;
    }
    const words = labels.map((label, i) => `${label} ${p[i].toFixed(3)}`).join(", ");
    picture.setAttribute("aria-label", `Probabilities at temperature ${temperature.toFixed(1)}: ${words}.`);
  }

  const traits = ["change:logits", "change:temperature"];
  traits.forEach((name) => model.on(name, update));
  update();
  return () => traits.forEach((name) => model.off(name, update));
}

export default { render };
