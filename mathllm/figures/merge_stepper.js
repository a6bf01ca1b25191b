// Byte-pair encoding on a few words: count the pairs, merge the most frequent, repeat.
import { html, table, widget } from "./elements.js";

// words: {word: count} -> pairs [left, right, count] in order of first appearance. cuts: the words as lists of symbols.
export function pairCounts(cuts, counts) {
  const pairs = new Map();
  cuts.forEach((symbols, word) => {
    symbols.slice(1).forEach((right, i) => {
      const key = JSON.stringify([symbols[i], right]);
      pairs.set(key, (pairs.get(key) ?? 0) + counts[word]);
    });
  });
  return [...pairs].map(([key, count]) => [...JSON.parse(key), count]);
}

// The symbols with every occurrence of the pair joined, from the left.
export function join(symbols, left, right) {
  const joined = [];
  for (let i = 0; i < symbols.length; i++) {
    const found = symbols[i] === left && symbols[i + 1] === right;
    joined.push(found ? left + right : symbols[i]);
    if (found) i++;
  }
  return joined;
}

// The most frequent pairs first; of equals the one that appeared first, or the smallest in the order of Unicode.
export function ranked(pairs, ties) {
  const before = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const order = ties === "lexicographic" ? (a, b) => before(a[0], b[0]) || before(a[1], b[1]) : () => 0;
  return [...pairs].sort((a, b) => b[2] - a[2] || order(a, b));
}

// All states of a run: the cuts before each merge, and the pairs [left, right, count] in order.
export function run(words, ties = "first appearance") {
  const counts = Object.values(words);
  let cuts = Object.keys(words).map((word) => [...word]);
  const states = [];
  for (;;) {
    const pairs = ranked(pairCounts(cuts, counts), ties);
    states.push({ cuts, pairs });
    if (!pairs.length) return states;
    cuts = cuts.map((symbols) => join(symbols, pairs[0][0], pairs[0][1]));
  }
}

const SHOWN = 12; // words
const grouped = (count) => count.toLocaleString("en-GB");

// The words as they are cut, the most frequent pairs, and the last merges.
function drawTables(parent, { cuts, pairs }, counts, done) {
  parent.replaceChildren();
  const words = cuts.slice(0, SHOWN).map((symbols, i) => [`${grouped(counts[i])} ×`, symbols.join(" · ")]);
  if (cuts.length > SHOWN) words.push(["", `and ${cuts.length - SHOWN} more`]);
  table(parent, "words", null, words);
  const best = pairs.slice(0, 6).map(([left, right, count]) => [`${left} ${right}`, grouped(count)]);
  table(parent, "pairs", null, best, 0);
  const merged = done.map(([left, right], i) => [i + 1, left + right]);
  table(parent, "merged", null, merged.slice(-6));
}

export default widget("merge-stepper", ["corpus", "ties", "step"], (figure, model) => {
  const corpora = model.get("corpora");
  const restarting = (trait) => ({
    read: () => model.get(trait),
    write: (value) => figure.assign({ [trait]: value, step: 0 }),
  });
  figure.choice("words", Object.keys(corpora), restarting("corpus"));
  figure.choice("break ties by", ["first appearance", "lexicographic"], restarting("ties"));
  const step = {
    read: () => Math.min(model.get("step"), Number(slider.max)),
    write: (value) => model.set("step", Math.max(0, Math.min(Number(slider.max), value))),
  };
  const slider = figure.slider("merges done", [0, 0, 1], step, (done) => `${done} / ${slider.max}`);
  figure.button("Undo a merge", () => step.write(step.read() - 1));
  figure.button("Merge", () => step.write(step.read() + 1));
  const readout = figure.readout();
  const tables = html("div", "mathllm-matrices", figure.root);

  return (corpus, ties) => {
    const all = run(corpora[corpus], ties);
    slider.max = all.length - 1;
    const state = all[step.read()];
    const [next] = state.pairs;
    const tied = state.pairs.filter((pair) => pair[2] === next[2]).length;
    const often = (count) => `(${grouped(count)} times${tied > 1 ? `, ${tied} pairs tied` : ""})`;
    readout.textContent = next ? `next: ${next[0]} + ${next[1]} ${often(next[2])}` : "no pair is left";
    const done = all.slice(0, step.read()).map(({ pairs }) => pairs[0]);
    drawTables(tables, state, Object.values(corpora[corpus]), done);
  };
});
