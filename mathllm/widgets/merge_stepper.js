// Byte-pair encoding on a few words: count the pairs, join the commonest, repeat.

// A pair as one key; no word holds the separator.
const key = (left, right) => `${left}\u0000${right}`;

// words: {word: count} -> pairs [left, right, count] in order of first appearance. cuts: the words as lists of symbols.
export function pairCounts(cuts, counts) {
  const table = new Map();
  cuts.forEach((symbols, word) => {
    for (let i = 0; i + 1 < symbols.length; i++) {
      const name = key(symbols[i], symbols[i + 1]);
      table.set(name, (table.get(name) ?? 0) + counts[word]);
    }
  });
  return [...table].map(([name, count]) => [...name.split("\u0000"), count]);
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

// The commonest pairs first; of equals the one that was met first, or the smallest in the order of Unicode.
export function ranked(pairs, ties) {
  const before = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const order = ties === "lexicographic" ? (a, b) => before(a[0], b[0]) || before(a[1], b[1]) : () => 0;
  return [...pairs].sort((a, b) => b[2] - a[2] || order(a, b));
}

// All states of a run: the cuts before each merge and the pairs in order; merges [left, right, count].
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

export function merges(words, ties) {
  return run(words, ties).slice(0, -1).map(({ pairs }) => pairs[0]);
}

const SHOWN = 12; // words
const grouped = (count) => count.toLocaleString("en-GB");

function render({ model, el }) {
  const corpora = model.get("corpora");
  const figure = new Figure("mathllm-merge-stepper", model, el);
  const afresh = (trait) => ({
    read: () => model.get(trait),
    write: (value) => {
      model.set(trait, value);
      model.set("step", 0);
    },
  });
  figure.choice("words", Object.keys(corpora), afresh("corpus"));
  figure.choice("ties go to the", ["first appearance", "lexicographic"], afresh("ties"));
  const step = {
    read: () => Math.min(model.get("step"), Number(slider.max)),
    write: (value) => model.set("step", Math.max(0, Math.min(Number(slider.max), value))),
  };
  const slider = figure.slider("merges done", [0, 0, 1], step, (done) => `${done} / ${slider.max}`);
  figure.button("Undo a merge", () => step.write(step.read() - 1));
  figure.button("Merge", () => step.write(step.read() + 1));
  const readout = figure.readout();
  const tables = html("div", "mathllm-matrices", figure.root);

  function drawTables({ cuts, pairs }, done) {
    const counts = Object.values(corpora[model.get("corpus")]);
    const words = cuts.slice(0, SHOWN).map((symbols, i) => [`${grouped(counts[i])} ×`, symbols.join(" · ")]);
    if (cuts.length > SHOWN) words.push(["", `and ${cuts.length - SHOWN} more`]);
    const first = done.length - Math.min(6, done.length) + 1;
    tables.replaceChildren();
    table(tables, "words", null, words);
    const best = pairs.slice(0, 6).map(([left, right, count]) => [`${left} ${right}`, grouped(count)]);
    table(tables, "pairs", null, best, 0);
    table(tables, "merged", null, done.slice(-6).map(([left, right], i) => [first + i, left + right]));
  }

  function draw() {
    const all = run(corpora[model.get("corpus")], model.get("ties"));
    slider.max = all.length - 1;
    const { pairs } = all[step.read()];
    const tied = pairs.filter((pair) => pair[2] === pairs[0][2]).length;
    const often = (count) => `(${grouped(count)} times${tied > 1 ? `, ${tied} pairs tied` : ""})`;
    const [next] = pairs;
    readout.textContent = next ? `next: ${next[0]} + ${next[1]} ${often(next[2])}` : "no pair is left";
    drawTables(all[step.read()], all.slice(0, step.read()).map((state) => state.pairs[0]));
  }

  return figure.follow(["corpus", "ties", "step"], draw);
}

export default { render };
