// Questions on the page: a reader predicts a number or chooses, presses Enter, and only then the folded answer opens.
(() => {
  const TOLERANCE = 0.02; // of the value: a prediction on paper
  const element = window.bookElement;

  // A comma stands between thousands (22,026) or before decimals (0,949): one of the two readings must be right.
  function readings(text) {
    const plain = text.trim().replace("−", "-");
    return [plain.replaceAll(",", ""), plain.replace(",", ".")].map(Number);
  }

  function isRight(guess, expected) {
    const value = Number(expected.replaceAll(",", ""));
    if (Number.isNaN(value)) return guess.trim().toLowerCase() === expected.trim().toLowerCase();
    return readings(guess).some((reading) => Math.abs(reading - value) <= TOLERANCE * Math.abs(value) + 1e-9);
  }

  // The question stands in front of the cell that holds its answer.
  function listBefore(details) {
    let place = details.closest(".cell") ?? details;
    for (place = place.previousElementSibling; place; place = place.previousElementSibling) {
      if (place.matches("ol")) return place;
    }
    return null;
  }

  function field() {
    const input = element("input", { type: "text", autocomplete: "off", size: 12 });
    return { parts: [element("label", {}, "Your prediction ", input)], guess: () => input.value };
  }

  function buttons(list, form, name) {
    const radios = [...list.children].map((item, i) => {
      const radio = element("input", { type: "radio", name, value: String(i + 1) });
      radio.setAttribute("form", form.id);
      const spoken = element("span", { className: "visually-hidden" }, `Answer ${i + 1}: `); // formulas have no name
      const label = element("label", {}, radio, " ", spoken);
      const words = item.querySelector("p") ?? item;
      label.append(...words.childNodes);
      words.append(label);
      return radio;
    });
    return { parts: [], guess: () => radios.find((radio) => radio.checked)?.value ?? "" };
  }

  function ask(details, i) {
    const form = element("form", { className: "book-question", id: `question-${i}` });
    const list = details.dataset.choice ? listBefore(details) : null;
    if (details.dataset.choice && !list) return;
    const { parts, guess } = list ? buttons(list, form, `choice-${i}`) : field();
    const verdict = element("output", {});
    form.append(...parts, element("button", { type: "submit" }, "Check"), verdict);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const given = guess();
      if (given.trim() === "") {
        verdict.textContent = list ? "Choose one first." : "Write a prediction first.";
        return;
      }
      const right = isRight(given, details.dataset.choice ?? details.dataset.answer);
      verdict.textContent = right ? "Right." : "Not this one: see below.";
      form.dispatchEvent(new CustomEvent("book-answered", { bubbles: true, detail: { question: i, right } }));
      details.open = true;
    });
    details.before(form);
  }

  window.addEventListener("DOMContentLoaded", () => document.querySelectorAll("details.book-answer").forEach(ask));
})();
