// Lines of a derivation, put in order with buttons: taken from the list below, moved up and down, put back.
// elements.js stands in front of this file.

// The order after a command: "add" at the end, "up", "down", "remove".
export function commanded(order, label, command) {
  const at = order.indexOf(label);
  const without = order.filter((other) => other !== label);
  if (command === "add") return [...without, label];
  if (command === "remove" || at < 0) return without;
  const to = Math.max(0, Math.min(without.length, at + (command === "up" ? -1 : 1)));
  return without.toSpliced(to, 0, label);
}

const KEYS = { ArrowUp: "up", ArrowDown: "down", Delete: "remove" };

class Arranging {
  constructor(model, el) {
    this.model = model;
    this.lines = new Map(model.get("lines").map(({ label, shown }) => [label, shown]));
    this.root = set(html("div", "mathllm-widget mathllm-arranging", el), {
      "data-lm-suppress-shortcuts": "true", role: "group", "aria-label": model.get("title"),
    });
    this.root.addEventListener("keydown", (event) => this.key(event));
    html("p", "mathllm-name", this.root, "Take the lines in order. Keys on a line: Alt+↑, Alt+↓, Delete.");
    this.taken = this.list("ol", "Your derivation");
    this.left = this.list("ul", "Lines that you have not taken");
    this.status = set(html("p", "mathllm-status", this.root), { role: "status", "aria-live": "polite" });
    this.result = this.field();
    this.draw();
  }

  list(kind, title) {
    html("strong", "mathllm-list-title", this.root, title);
    return set(html(kind, "mathllm-lines", this.root), { "aria-label": title });
  }

  field() {
    const box = html("div", "mathllm-result", this.root);
    const label = html("label", "", box, "Write this into the answer cell: ");
    const input = set(html("input", "", label), { readonly: "", type: "text", size: 30 });
    const copy = set(html("button", "mathllm-button", box, "Copy"), { type: "button" });
    copy.addEventListener("click", () => this.copy(input));
    return input;
  }

  async copy(input) {
    input.select();
    try {
      await navigator.clipboard.writeText(input.value);
      this.status.textContent = "Copied.";
    } catch {
      this.status.textContent = document.execCommand("copy") ? "Copied." : "Selected: copy it with Ctrl+C.";
    }
  }

  key(event) {
    event.stopPropagation(); // JupyterLab has shortcuts for the same keys
    const label = event.target.closest("[data-line]")?.dataset.line;
    const command = event.altKey || event.key === "Delete" ? KEYS[event.key] : undefined;
    if (!label || !command || event.target.readOnly) return;
    event.preventDefault();
    if (this.model.get("order").includes(label)) this.command(label, command);
  }

  command(label, command) {
    const order = commanded(this.model.get("order"), label, command);
    this.model.set("order", order);
    this.model.save_changes();
    this.draw();
    const at = order.indexOf(label);
    this.status.textContent =
      at < 0 ? `Line ${label} is put back.` : `Line ${label} is now ${at + 1} of ${order.length}.`;
    this.focus(label, command);
  }

  // The focus stays on the line: on the button that was pressed, or on the next that can be pressed.
  focus(label, command) {
    const buttons = [...this.root.querySelectorAll(`[data-line="${label}"] button`)];
    const same = buttons.find((button) => button.dataset.command === command && !button.disabled);
    (same ?? buttons.find((button) => !button.disabled))?.focus();
  }

  row(parent, label, commands) {
    const row = set(html("li", "mathllm-line", parent), { "data-line": label });
    html("strong", "mathllm-letter", row, label);
    html("span", "mathllm-text", row).innerHTML = this.lines.get(label);
    const buttons = html("span", "mathllm-buttons", row);
    for (const [command, text, words, disabled] of commands) {
      const button = set(html("button", "mathllm-button", buttons, text), { type: "button", "aria-label": words });
      button.dataset.command = command;
      button.disabled = disabled;
      button.addEventListener("click", () => this.command(label, command));
    }
  }

  draw() {
    const order = this.model.get("order");
    this.taken.replaceChildren();
    this.left.replaceChildren();
    order.forEach((label, i) =>
      this.row(this.taken, label, [
        ["up", "↑", `Move line ${label} up`, i === 0],
        ["down", "↓", `Move line ${label} down`, i === order.length - 1],
        ["remove", "✕", `Put line ${label} back`, false],
      ]),
    );
    for (const label of this.lines.keys()) {
      if (!order.includes(label)) this.row(this.left, label, [["add", "Take", `Take line ${label}`, false]]);
    }
    this.result.value = `${this.model.get("name")} = "${order.join(" ")}"`;
  }
}

export default {
  render({ model, el }) {
    const arranging = new Arranging(model, el);
    const heard = () => arranging.draw();
    model.on("change:order", heard);
    return () => model.off("change:order", heard);
  },
};
