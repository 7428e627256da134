// The keyboard: one key for each thing that is done often; `?` shows them.
import { byId, el, replace } from "./dom.js";
import { set } from "./state.js";
import { nextTheme } from "./theme.js";
import { step } from "./time_bar.js";

const SECTIONS = { f: "flows", e: "engines", c: "clusters", w: "weights", d: "log" };
const KEYS = [
  ["[  ]", "one version back, on"],
  ["{  }", "twenty versions back, on"],
  ["l  Esc", "back to live"],
  ["f e c w d", "to the flow, engines, clusters, weights, decisions"],
  ["/", "find engines"],
  ["x", "all clusters again"],
  ["t", "the next theme"],
  ["↑ ↓ Enter", "in a table: to a row, and open it; 1 to 9 sort by a column"],
  ["?", "these keys"],
];

export function startKeys() {
  byId("keys").addEventListener("click", showHelp);
  byId("keys").setAttribute("aria-label", "Keys");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.closest("input:not([type=range]), select, textarea");
    if (event.key === "Escape") {
      if (typing) event.target.blur();
      else set({ version: null });
    } else if (!typing && act(event.key)) event.preventDefault();
  });
}

function act(key) {
  switch (key) {
    case "[": step(-1); return true;
    case "]": step(1); return true;
    case "{": step(-20); return true;
    case "}": step(20); return true;
    case "l": set({ version: null }); return true;
    case "t": nextTheme(); return true;
    case "x": set({ cluster: null, route: null }); return true;
    case "?": showHelp(); return true;
    case "/": byId("engines").querySelector("input").focus(); return true;
    default: return key in SECTIONS && go(SECTIONS[key]);
  }
}

function go(id) {
  const section = byId(id);
  section.scrollIntoView({ block: "start" });
  const first = [".vt", ".scroll", "select", "button"].map((each) => section.querySelector(each)).find(Boolean);
  first?.focus({ preventScroll: true });
  return true;
}

function showHelp() {
  const help = byId("help");
  const rows = KEYS.map(([keys, said]) => [el("dt", {}, keys.split("  ").map((key) => [el("kbd", {}, key), " "]).flat()), el("dd", {}, said)]).flat();
  const close = el("button", { type: "button", class: "quiet", onclick: () => help.close() }, "Close");
  replace(help, el("header", {}, el("h2", { id: "help-head" }, "Keys"), close), el("section", { class: "part" }, el("dl", {}, rows)));
  help.showModal();
  close.focus();
}
