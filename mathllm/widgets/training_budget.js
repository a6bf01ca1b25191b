// The bill of a training run, from its sizes alone.

// Bytes on each of n devices that share the work by ZeRO: weights, master copy, moments, gradients.
export function zeroMemory(parameters, n, stage) {
  const share = [3, 1, 1, 2].map((first) => (stage >= first ? n : 1));
  return [2, 4, 8, 4].map((bytes, i) => (parameters * bytes) / share[i]);
}

export function flops(parameters, tokens) {
  return 6 * parameters * tokens;
}

// Days on devices of a peak (operations per second), of which a share is reached.
export function days(operations, devices, peak = 312e12, utilization = 0.4) {
  return operations / (devices * peak * utilization) / 86400;
}

export function bubble(stages, microbatches) {
  return (stages - 1) / (stages + microbatches - 1);
}

// The Chinchilla law, E + A/N^α + B/D^β, with the constants of Hoffmann et al. 2022.
export function loss(parameters, tokens) {
  return 1.69 + 406.4 / parameters ** 0.34 + 410.7 / tokens ** 0.28;
}

// 7.02e9 -> "7.02 billion"; three digits.
export function inWords(x) {
  const units = [[1e12, " trillion"], [1e9, " billion"], [1e6, " million"], [1e3, " thousand"], [0, ""]];
  const [unit, name] = units.find(([size]) => x >= size);
  return Number((x / (unit || 1)).toPrecision(3)) + name;
}

const PARTS = ["weights", "master copy", "moments", "gradients"];
const [LEFT, RIGHT, ROW] = [92, 310, 28];

function render({ model, el }) {
  const root = frame("mathllm-training-budget", el);
  const picture = svg("svg", { viewBox: `0 0 400 ${ROW * 5 + 4}`, class: "mathllm-plot", role: "img" }, root);
  const bars = [...PARTS, "in all"].map((name, i) => {
    const y = 4 + i * ROW;
    svg("text", { x: LEFT - 8, y: y + 15, "text-anchor": "end" }, picture).textContent = name;
    svg("rect", { x: LEFT, y, width: RIGHT - LEFT, height: 20, class: "mathllm-track" }, picture);
    const bar = svg("rect", { x: LEFT, y, width: 0, height: 20, class: i < 4 ? "mathllm-a" : "mathllm-b" }, picture);
    return { bar, value: svg("text", { x: RIGHT + 6, y: y + 15 }, picture) };
  });
  const controls = html("div", "mathllm-controls", root);
  const sliders = [
    ["parameters", "parameters N", 7, 12, 0.05, (x) => inWords(10 ** x)],
    ["tokens", "tokens D", 9, 14, 0.05, (x) => inWords(10 ** x)],
    ["devices", "devices", 0, 13, 1, (x) => String(2 ** x)],
    ["zero", "ZeRO stage", 0, 3, 1, String],
    ["stages", "pipeline stages S", 1, 32, 1, String],
    ["microbatches", "microbatches M", 1, 128, 1, String],
  ].map(([trait, name, min, max, step, words]) => {
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
    return () => {
      input.value = model.get(trait);
      output.textContent = words(model.get(trait));
      input.setAttribute("aria-valuetext", output.textContent);
    };
  });
  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const rows = ["operations 6ND", "days at 312 · 10^12 per second, 40 % used", "tokens per parameter", "loss by the law", "waiting in the pipeline"].map((name) => {
    const row = html("div", "mathllm-row", readout);
    html("span", "mathllm-name", row, name);
    return html("strong", "mathllm-value", row);
  });

  function update() {
    sliders.forEach((show) => show());
    const [N, D, n] = [10 ** model.get("parameters"), 10 ** model.get("tokens"), 2 ** model.get("devices")];
    const memory = zeroMemory(N, n, model.get("zero"));
    const total = memory.reduce((sum, part) => sum + part, 0);
    [...memory, total].forEach((part, i) => {
      bars[i].bar.setAttribute("width", (part / (18 * N)) * (RIGHT - LEFT));
      bars[i].value.textContent = `${Number((part / 1e9).toPrecision(3)).toLocaleString("en-GB")} GB`;
    });
    const C = flops(N, D);
    const time = days(C, n);
    rows[0].textContent = C.toExponential(2).replace("e+", " · 10^");
    rows[1].textContent = inWords(time);
    rows[2].textContent = Number((D / N).toPrecision(3)).toLocaleString("en-GB");
    rows[3].textContent = `${loss(N, D).toFixed(3)} nats`;
    rows[4].textContent = `${(100 * bubble(model.get("stages"), model.get("microbatches"))).toFixed(1)} % of the time`;
    const parts = [...PARTS, "in all"].map((name, i) => `${name} ${bars[i].value.textContent}`).join(", ");
    picture.setAttribute("aria-label", `Memory on each device: ${parts}.`);
  }

  const traits = ["parameters", "tokens", "devices", "zero", "stages", "microbatches"].map((name) => `change:${name}`);
  traits.forEach((name) => model.on(name, update));
  update();
  return () => traits.forEach((name) => model.off(name, update));
}

export default { render };
