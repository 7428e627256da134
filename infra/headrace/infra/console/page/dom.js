// Elements, made of text and nothing else: whatever an id or a sentence holds, it is shown as it is.
const SVG = "http://www.w3.org/2000/svg";

export function el(tag, given = {}, ...children) {
  return fill(document.createElement(tag), given, children);
}

export function svg(tag, given = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), given, children);
}

function fill(node, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return node;
}

const FOCUSABLE = "button, select, input, [tabindex]";

// New children for a node. Whoever stood on one with the keyboard stands on the one that took its place.
export function replace(node, ...children) {
  const active = document.activeElement;
  const at = active && active !== node && node.contains(active) ? [...node.querySelectorAll(FOCUSABLE)].indexOf(active) : -1;
  node.replaceChildren(...children.flat(2).filter((child) => child !== null && child !== undefined));
  if (at >= 0) node.querySelectorAll(FOCUSABLE)[at]?.focus({ preventScroll: true });
  return node;
}

export const byId = (id) => document.getElementById(id);

// The head of a panel: its name, what it shows, and its controls.
export function panelHead(id, name, about, ...controls) {
  const controlsBox = controls.length ? el("div", { class: "push" }, controls) : null;
  return el("header", {}, el("h2", { id }, name), about, controlsBox);
}

export function choice(label, options, chosen, onchange) {
  const buttons = options.map(([value, name]) =>
    el("button", { type: "button", class: "quiet", "aria-pressed": String(value === chosen), data: { value } }, name),
  );
  const box = el("div", { class: "group", role: "group", "aria-label": label }, buttons);
  box.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    onchange(button.dataset.value);
  });
  return box;
}
