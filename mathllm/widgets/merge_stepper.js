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

function render({ model, el }) {
  const root = frame("mathllm-merge-stepper", el);
  const corpora = model.get("corpora");
  const controls = html("div", "mathllm-controls", root);
  function choice(name, options, trait) {
    const label = html("label", "mathllm-choice", controls);
    html("span", "", label, name);
    const select = html("select", "", label);
    options.forEach((option) => (html("option", "", select, option).value = option));
    select.addEventListener("change", () => {
      model.set(trait, select.value);
      model.set("step", 0);
      model.save_changes();
      update();
    });
    return () => (select.value = model.get(trait));
  }
  const refresh = [
    choice("words", Object.keys(corpora), "corpus"),
    choice("ties go to the", ["first appearance", "lexicographic"], "ties"),
  ];
  const label = html("label", "", controls);
  html("span", "", label, "merges done");
  const slider = html("input", "", label);
  Object.assign(slider, { type: "range", min: 0, step: 1 });
  const output = html("output", "", label);
  const go = (step) => {
    model.set("step", Math.max(0, Math.min(Number(slider.max), step)));
    model.save_changes();
    update();
  };
  slider.addEventListener("input", () => go(Number(slider.value)));
  const buttons = html("div", "mathllm-buttons", root);
  for (const [name, by] of [["Undo a merge", -1], ["Merge", 1]]) {
    const button = html("button", "mathllm-button", buttons, name);
    button.type = "button";
    button.addEventListener("click", () => go(model.get("step") + by));
  }
  const readout = html("div", "mathllm-readout", root);
  readout.setAttribute("aria-live", "polite");
  const now = html("div", "mathllm-row", readout);
  const panels = html("div", "mathllm-matrices", root);

  function table(caption, rows, lit = -1) {
    const node = html("table", "mathllm-matrix", panels);
    html("caption", "", node, caption);
    rows.forEach((cells, i) => {
      const row = html("tr", i === lit ? "mathllm-lit" : "", node);
      cells.forEach((cell, j) => html(j ? "td" : "th", "", row, cell));
    });
  }

  function update() {
    refresh.forEach((show) => show());
    const words = corpora[model.get("corpus")];
    const states = run(words, model.get("ties"));
    slider.max = states.length - 1;
    const step = Math.min(model.get("step"), states.length - 1);
    slider.value = step;
    output.textContent = `${step} / ${states.length - 1}`;
    const { cuts, pairs } = states[step];
    const done = states.slice(0, step).map((state) => state.pairs[0]);
    const tied = pairs.filter((pair) => pair[2] === pairs[0][2]).length;
    now.textContent = pairs.length
      ? `next: ${pairs[0][0]} + ${pairs[0][1]} (${pairs[0][2].toLocaleString("en-GB")} times${tied > 1 ? `, ${tied} pairs tied` : ""})`
      : "no pair is left";
    panels.replaceChildren();
    const counts = Object.values(words);
    const rows = cuts.slice(0, SHOWN).map((symbols, i) => [`${counts[i].toLocaleString("en-GB")} ×`, symbols.join(" · ")]);
    if (cuts.length > SHOWN) rows.push(["", `and ${cuts.length - SHOWN} more`]);
    table("words", rows);
    table("pairs", pairs.slice(0, 6).map(([left, right, count]) => [`${left} ${right}`, count.toLocaleString("en-GB")]), pairs.length ? 0 : -1);
    table("merged", done.slice(-6).map(([left, right], i) => [done.length - Math.min(6, done.length) + i + 1, left + right]));
  }

  const traits = ["change:corpus", "change:ties", "change:step"];
  traits.forEach((name) => model.on(name, update));
  update();
  return () => traits.forEach((name) => model.off(name, update));
}

export default { render };
