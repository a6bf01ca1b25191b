// Scores become probabilities. Differences of scores count, a common shift does not, the temperature scales them.

// How many times as likely the first candidate is as the second: e to the difference of their scores over T.
export function ratio(first, second, temperature = 1) {
  return Math.exp((first - second) / temperature);
}

// Every score raised by `step`, as far as no slider leaves its range: then all stay, so that differences stay.
export function raised(logits, step, [low, high]) {
  return logits.some((z) => z + step < low || z + step > high) ? logits : logits.map((z) => z + step);
}

const RANGE = [-5, 10];

function render({ model, el }) {
  const labels = model.get("labels");
  const figure = new Figure("mathllm-softmax-bars", model, el);
  const bars = figure.bars(labels, 84, 330, 34);
  labels.forEach((label, i) =>
    figure.slider(`score of “${label}”`, [...RANGE, 0.1], ["logits", i], (z) => fixed(z, 1)),
  );
  figure.slider("temperature T", [0.1, 10, 0.1], "temperature", (T) => T.toFixed(1));
  const [row] = figure.rows([""]);
  for (const [name, step] of [["Raise all by 1", 1], ["Lower all by 1", -1]]) {
    figure.button(name, () => model.set("logits", raised(model.get("logits"), step, RANGE)));
  }

  function draw() {
    const [logits, temperature] = figure.get("logits", "temperature");
    const p = softmax(logits, temperature).map((share, i) => {
      bars[i].show(share, share.toFixed(3));
      return `${labels[i]} ${share.toFixed(3)}`;
    });
    if (labels.length > 1) {
      const exponent = `${fixed(logits[0] - logits[1], 1)} / ${temperature.toFixed(1)}`;
      row.formula.textContent = `“${labels[0]}” : “${labels[1]}” = e^(${exponent})`;
      const times = ratio(logits[0], logits[1], temperature);
      row.value.textContent = `= ${times < 1e4 ? times.toPrecision(3) : "more than 10,000"}`;
    }
    return `Probabilities at temperature ${temperature.toFixed(1)}: ${p.join(", ")}.`;
  }

  return figure.follow(["logits", "temperature"], draw);
}

export default { render };
