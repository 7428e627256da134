// The drawer: one dialog at the side, for whatever was asked about last. Escape closes it; the focus goes back.
import { byId, el, replace } from "./dom.js";

let ticket = 0;

// Shows something, and gives a ticket: with it an answer that comes later finds out whether it is still waited for.
export function openDrawer(title, under, ...parts) {
  const drawer = byId("drawer");
  const close = el("button", { type: "button", class: "quiet", onclick: () => drawer.close() }, "Close");
  const head = el("header", {}, el("div", {}, el("h2", { id: "drawer-head" }, title), under ? el("p", {}, under) : null), close);
  replace(drawer, head, ...parts);
  drawer.scrollTop = 0;
  if (!drawer.open) drawer.showModal();
  close.focus();
  return ++ticket;
}

export const isAwaited = (mine) => mine === ticket && byId("drawer").open;

export const part = (name, ...children) => el("section", { class: "part" }, name ? el("h3", {}, name) : null, children);

export const plainList = (items) => el("ul", { class: "plain" }, items.map((item) => el("li", {}, item)));

// The drawer as it is while its answer is awaited, or where there is none.
export const note = (sentence) => el("p", { class: "nothing" }, sentence);

export function startDrawer() {
  const drawer = byId("drawer");
  drawer.addEventListener("click", (event) => {
    if (event.target === drawer) drawer.close();
  });
}
