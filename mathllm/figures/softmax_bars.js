// Softmax: the probabilities depend on the differences of the logits, divided by the temperature.
import { fixed, softmax, widget } from "./elements.js";

// How many times as likely the first candidate is as the second: e to the difference of their logits over τ.
export const ratio = (first, second, temperature = 1) => Math.exp((first - second) / temperature);

// Every logit raised by `step`; if one would leave the range of its slider, all stay, so that differences stay.
export function raised(logits, step, [low, high]) {
  return logits.some((z) => z + step < low || z + step > high) ? logits : logits.map((z) => z + step);
}

const RANGE = [-5, 10];

export default widget("softmax-bars", ["logits", "temperature"], (figure, model) => {
  const labels = model.get("labels");
  const bars = figure.bars(labels, [84, 330, 34]);
  labels.forEach((label, i) => {
    figure.slider(`logit of “${label}”`, [...RANGE, 0.1], ["logits", i], (z) => fixed(z, 1));
  });
  figure.slider("temperature τ", [0.1, 10, 0.1], "temperature", (tau) => tau.toFixed(1));
  const [showRatio] = figure.rows([""]);
  for (const [name, step] of [["Raise all by 1", 1], ["Lower all by 1", -1]]) {
    figure.button(name, () => model.set("logits", raised(model.get("logits"), step, RANGE)));
  }

  return (logits, temperature) => {
    const p = softmax(logits, temperature);
    p.forEach((share, i) => bars[i](share, share.toFixed(3)));
    if (labels.length > 1) {
      const exponent = `${fixed(logits[0] - logits[1], 1)} / ${temperature.toFixed(1)}`;
      const times = ratio(logits[0], logits[1], temperature);
      const value = `= ${times < 1e4 ? times.toPrecision(3) : "more than 10,000"}`;
      showRatio(value, `“${labels[0]}” : “${labels[1]}” = e^(${exponent})`);
    }
    const words = labels.map((label, i) => `${label} ${p[i].toFixed(3)}`);
    return `Probabilities at temperature ${temperature.toFixed(1)}: ${words.join(", ")}.`;
  };
});
