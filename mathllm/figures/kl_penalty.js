// The policy with the largest reward minus β · KL from the reference: the reference, reweighted by e^(reward / β).
import { axes, circle, dot, html, klDivergence, label, move, range, softmax, svg, widget } from "./elements.js";

export function optimum(reference, reward, beta) {
  return softmax(reference.map((p, i) => Math.log(p) + reward[i] / beta));
}

// For the best policy of each β: [KL from the reference, expected reward, expected true reward].
export function path(reference, reward, trueReward, betas) {
  const policies = betas.map((beta) => optimum(reference, reward, beta));
  return policies.map((best) => [klDivergence(best, reference), dot(best, reward), dot(best, trueReward)]);
}

const BOX = [84, 300, 14, 152]; // left, right, top, bottom of the curves
const GRID = range(121).map((i) => 10 ** (1 - i / 60)); // from β = 10 to β = 0.1

// Reward and true reward over the divergence, for all β; returns what moves the dots on them.
function drawCurves(picture, curves) {
  const heights = curves.flatMap(([, ...rewards]) => rewards);
  const [low, high] = [Math.min(...heights), Math.max(...heights)];
  const far = Math.max(...curves.map(([kl]) => kl)) || 1;
  const kl = { low: 0, high: far, ticks: [0], title: "KL from the reference" };
  const place = axes(picture, BOX, kl, { low, high: high + (low === high), ticks: [low, high] });
  const dots = ["reward", "true reward"].map((word, k) => {
    const look = `mathllm-${"ab"[k]}`;
    const points = curves.map((point) => place(point[0], point[k + 1]));
    svg("polyline", { class: `${look} mathllm-curve`, points: points.join(" ") }, picture);
    const [x, y] = points.at(-1);
    label(picture, [x + 10, y + 4], word, "start", look);
    return circle(picture, [x, y], 5, look);
  });
  return ([kl, ...rewards]) => dots.forEach((dot, k) => move(dot, place(kl, rewards[k])));
}

export default widget("kl-penalty", ["beta"], (figure, model) => {
  const [answers, reference, reward, trueReward] = figure.get("answers", "reference", "reward", "true_reward");
  html("div", "mathllm-name", figure.root, "pale: the reference; full: the best policy for this β");
  const bars = figure.bars(answers, [84, 338, 32], { before: true, below: 196 });
  const below = svg("g", { transform: `translate(0 ${32 * answers.length})` }, figure.plot);
  const moveDots = drawCurves(below, path(reference, reward, trueReward, GRID));
  const exponent = {
    read: () => Math.log10(model.get("beta")),
    write: (exponent) => model.set("beta", Math.min(10, Math.max(0.1, 10 ** exponent))),
  };
  figure.slider("KL coefficient β", [-1, 1, 0.02], exponent, () => model.get("beta").toFixed(2));
  const readout = figure.readout();

  return (beta) => {
    const best = optimum(reference, reward, beta);
    const [point] = path(reference, reward, trueReward, [beta]);
    best.forEach((p, i) => bars[i](p, p.toFixed(3), reference[i]));
    moveDots(point);
    const [kl, gain, trueGain] = point.map((x) => x.toFixed(2));
    const objective = (point[1] - beta * point[0]).toFixed(2);
    readout.textContent = `reward ${gain} − ${beta.toFixed(2)} · KL ${kl} = ${objective}; true reward ${trueGain}`;
    const probabilities = answers.map((answer, i) => `${answer} ${best[i].toFixed(3)}`).join(", ");
    return `Best policy: ${probabilities}. ${readout.textContent}.`;
  };
});
