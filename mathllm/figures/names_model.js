// The names model on the first page: a trained transformer of 100,160 parameters, computed here as mathllm computes it.
// Two blocks of the kind of LLaMA: RMS norm, attention with rotary positions, a gated feed-forward network.
import { fixed, html, range, softmax, sum, table, widget } from "./elements.js";

export const LETTERS = ["⏎", ..."abcdefghijklmnopqrstuvwxyz", "end"]; // ⏎ stands before and behind each name
const [LAYERS, HEADS, WIDTH, HIDDEN] = [2, 4, 64, 170];
const KEYS = WIDTH / HEADS; // the width of a head
const [EPSILON, BASE] = [1e-6, 10000]; // of the norms, and of the rotary angles

// From one float16 number of 16 bits: sign, exponent, fraction.
function half(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
}

// The weights from base64, each matrix as a list of rows, in the order of tools/build_names_model.py.
export function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const numbers = Array.from(new Uint16Array(bytes.buffer), half);
  let read = 0;
  const vector = (n) => numbers.slice(read, (read += n));
  const matrix = (rows, columns) => range(rows).map(() => vector(columns));
  const embedding = matrix(LETTERS.length, WIDTH);
  const blocks = range(LAYERS).map(() => ({
    attentionNorm: vector(WIDTH),
    query: matrix(WIDTH, WIDTH), key: matrix(WIDTH, WIDTH), value: matrix(WIDTH, WIDTH), output: matrix(WIDTH, WIDTH),
    feedForwardNorm: vector(WIDTH),
    gate: matrix(WIDTH, HIDDEN), up: matrix(WIDTH, HIDDEN), down: matrix(HIDDEN, WIDTH),
  }));
  return { embedding, blocks, finalNorm: vector(WIDTH) };
}

// Matrices as lists of rows

const transpose = (a) => a[0].map((_, j) => a.map((row) => row[j]));
const add = (a, b) => a.map((row, i) => row.map((x, j) => x + b[i][j]));
const columns = (a, from, to) => a.map((row) => row.slice(from, to));

function product(a, b) {
  const turned = transpose(b);
  return a.map((row) => turned.map((column) => row.reduce((total, x, k) => total + x * column[k], 0)));
}

// Chapter 12: each row divided by its root mean square, times a gain.
function rmsNorm(x, gain) {
  return x.map((row) => {
    const rms = Math.sqrt(sum(row.map((a) => a * a)) / row.length + EPSILON);
    return row.map((a, i) => (gain[i] * a) / rms);
  });
}

// Chapter 10: row t is turned by t · base^(−2i/K), component i together with i + K/2.
function rotate(x) {
  const middle = KEYS / 2;
  return x.map((row, t) => row.map((a, c) => {
    const angle = t * BASE ** (-(2 * (c % middle)) / KEYS);
    return a * Math.cos(angle) + (c < middle ? -row[c + middle] : row[c - middle]) * Math.sin(angle);
  }));
}

// Chapter 10: one head. Query i attends to the keys j ≤ i.
function attend(query, key, value) {
  const scores = product(query, transpose(key)).map((row) => row.map((score) => score / Math.sqrt(KEYS)));
  const weights = scores.map((row, i) => softmax(row.map((score, j) => (j <= i ? score : -Infinity))));
  return { query, key, value, scores, weights, mixed: product(weights, value) };
}

// Chapter 12: y = (silu(x W_gate) ⊙ x W_up) W_down.
function feedForward(x, { gate, up, down }) {
  const [gates, ups] = [product(x, gate), product(x, up)];
  return product(gates.map((row, i) => row.map((g, j) => (g / (1 + Math.exp(-g))) * ups[i][j])), down);
}

// Every matrix on the way from tokens to logits.
export function forward(weights, tokens) {
  const embeddings = tokens.map((token) => weights.embedding[token]);
  let x = embeddings;
  const blocks = weights.blocks.map((block) => {
    const unit = rmsNorm(x, block.attentionNorm);
    const [query, key, value] = [block.query, block.key, block.value].map((W) => product(unit, W));
    const heads = range(HEADS).map((h) => {
      const part = (a) => columns(a, h * KEYS, (h + 1) * KEYS);
      return attend(rotate(part(query)), rotate(part(key)), part(value));
    });
    x = add(x, product(tokens.map((_, t) => heads.flatMap(({ mixed }) => mixed[t])), block.output));
    x = add(x, feedForward(rmsNorm(x, block.feedForwardNorm), block));
    return { heads, output: x };
  });
  return { embeddings, blocks, logits: product(rmsNorm(x, weights.finalNorm), transpose(weights.embedding)) };
}

export const run = (base64, tokens) => forward(unpack(base64), tokens);

// What the model reads of a word: the token before the first letter, then its letters.
const MOST = 14;
export const cleaned = (word) => word.toLowerCase().normalize("NFD").replace(/[^a-z]/g, "").slice(0, MOST);
export const encode = (word) => [0, ...[...cleaned(word)].map((letter) => LETTERS.indexOf(letter))];

// The figure

const SHOWN = { // name: [its letter, a sentence]
  embeddings: ["X", "The row of each token in the embedding table: what the first block reads."],
  query: ["Q", "What each position looks for, turned by its position."],
  key: ["K", "What each position offers to the queries, turned by its position."],
  value: ["V", "What a position passes on when it is attended to."],
  scores: ["S = QKᵀ/√16", "The dot product of each query with each key. Those of later letters are then masked."],
  weights: ["A = softmax(S)", "Each row is a distribution: how much a position (row) attends to itself and to earlier ones."],
  mixed: ["AV", "The values, averaged with the attention weights."],
  output: ["X after the block", "The embeddings plus everything that attention and feed-forward have added so far."],
  logits: ["logits", "A score for each token that may come next. Softmax of the last row gives the bars above."],
};

// A matrix as a picture: a cell for each number, blue for positive, orange for negative.
function paint(canvas, matrix) {
  const largest = Math.max(...matrix.flat().map(Math.abs));
  Object.assign(canvas, { width: matrix[0].length, height: matrix.length });
  const pen = canvas.getContext("2d");
  matrix.forEach((row, i) => row.forEach((x, j) => {
    pen.fillStyle = `rgba(${x < 0 ? "222, 128, 20" : "38, 136, 210"}, ${Math.abs(x) / largest})`;
    pen.fillRect(j, i, 1, 1);
  }));
}

const names = widget("names-model", ["word", "layer", "head", "shown"], (figure, model) => {
  const weights = unpack(model.get("weights"));
  const ask = html("label", "mathllm-ask", figure.root);
  html("span", "", ask, "Your name, or the beginning of one");
  const input = Object.assign(html("input", "", ask), { type: "text", maxLength: MOST, autocomplete: "off", spellcheck: false });
  input.addEventListener("input", () => figure.change(() => model.set("word", cleaned(input.value))));

  const chips = html("ol", "mathllm-tokens", figure.root);
  chips.setAttribute("aria-label", "Tokens and their numbers");
  const bars = html("div", "mathllm-next", figure.root);
  const title = html("p", "mathllm-value", bars);
  title.setAttribute("aria-live", "polite");
  const list = html("ol", "", bars);
  const rows = range(6).map(() => {
    const row = html("li", "", list);
    return [html("span", "", row), html("span", "mathllm-bar", html("span", "mathllm-rail", row)), html("span", "", row)];
  });

  let probabilities;
  const last = () => model.get("word").length >= MOST;
  const append = (token) => last() || token === 0 || token === 27 || model.set("word", model.get("word") + LETTERS[token]);
  const draws = () => {
    let rest = Math.random();
    return Math.max(probabilities.findIndex((p) => (rest -= p) < 0), 0);
  };
  figure.button("Add the likeliest letter", () => append(probabilities.indexOf(Math.max(...probabilities))));
  figure.button("Draw a letter", () => append(draws()));
  figure.button("Clear", () => model.set("word", ""));

  html("p", "mathllm-hint", figure.root, "Every matrix on the way there. Choose one to see its numbers.");
  figure.choice("layer", [[0, "1 of 2"], [1, "2 of 2"]], "layer");
  figure.choice("head", range(HEADS).map((h) => [h, `${h + 1} of ${HEADS}`]), "head");
  const pictures = html("div", "mathllm-pictures", figure.root);
  const buttons = Object.entries(SHOWN).map(([name, [letter]]) => {
    const button = Object.assign(html("button", "mathllm-picture", pictures), { type: "button" });
    const canvas = html("canvas", "", button);
    html("strong", "", button, letter);
    const size = html("span", "", button);
    button.addEventListener("click", () => figure.change(() => model.set("shown", name)));
    return { name, button, canvas, size };
  });
  const words = html("p", "mathllm-words", figure.root);
  const numbers = Object.assign(html("div", "mathllm-numbers", figure.root), { tabIndex: 0 });
  numbers.setAttribute("role", "region");

  return (word, layer, head, shown) => {
    const tokens = encode(word);
    const { embeddings, blocks, logits } = forward(weights, tokens);
    const matrices = { embeddings, ...blocks[layer].heads[head], output: blocks[layer].output, logits };
    const names = tokens.map((token) => LETTERS[token]);
    if (cleaned(input.value) !== word) input.value = word;
    chips.replaceChildren();
    tokens.forEach((token) => html("small", "", html("li", "", chips, LETTERS[token]), String(token)));

    probabilities = softmax(logits.at(-1));
    const order = range(LETTERS.length).sort((a, b) => probabilities[b] - probabilities[a]);
    const told = (token) => (token === 0 ? "⏎ (end of the name)" : LETTERS[token]);
    const percent = (token) => `${(100 * probabilities[token]).toFixed(1)} %`;
    title.textContent = `After “${word || "⏎"}”: ${told(order[0])}, ${percent(order[0])}`;
    rows.forEach(([name, bar, value], i) => {
      name.textContent = LETTERS[order[i]];
      bar.style.width = `${100 * probabilities[order[i]]}%`;
      value.textContent = percent(order[i]);
    });

    buttons.forEach(({ name, button, canvas, size }) => {
      const matrix = matrices[name];
      paint(canvas, matrix);
      size.textContent = `${matrix.length} × ${matrix[0].length}`;
      button.setAttribute("aria-pressed", name === shown);
      button.title = "Show its numbers";
    });
    const [letter, sentence] = SHOWN[shown];
    words.textContent = sentence;
    numbers.replaceChildren();
    const square = shown === "scores" || shown === "weights";
    const across = square ? names : shown === "logits" ? LETTERS : matrices[shown][0].map((_, c) => String(c + 1));
    table(numbers, letter, across, matrices[shown].map((row, i) => [names[i], ...row.map((x) => fixed(x, 2))]));
    numbers.setAttribute("aria-label", `The numbers of ${letter}`);
  };
});
export default names;

// A figure on a page without a kernel keeps its settings itself.
export function standing(traits) {
  return { get: (name) => traits[name], set: (name, value) => (traits[name] = value), save_changes() {}, on() {}, off() {} };
}
