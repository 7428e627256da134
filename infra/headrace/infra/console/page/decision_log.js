// The decision log: what each tick found and moved, newest first; ticks that moved nothing are left out unless asked for.
import { byId, el, panelHead, replace } from "./dom.js";
import { clock, counted, percent, routeName, rps, whole } from "./format.js";
import { set } from "./state.js";
import { inWords } from "./words.js";

let every = false;

export const wantsEvery = () => every;

export function startLog(refresh) {
  const toggle = el("button", { type: "button", class: "quiet", "aria-pressed": "false" }, "Quiet ticks too");
  toggle.addEventListener("click", () => {
    every = !every;
    toggle.setAttribute("aria-pressed", String(every));
    refresh();
  });
  const list = el("ol", { class: "log", id: "log-list" });
  const box = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Decisions" }, list);
  replace(byId("log"), panelHead("log-head", "Decision log", el("span", { class: "about", id: "log-about" }), toggle), box);
}

export function showLog(found) {
  const parts = [];
  if (found.quiet) parts.push(`${counted(found.quiet, "tick")} that moved nothing left out`);
  if (found.older) parts.push(`${whole(found.older)} older`);
  replace(byId("log-about"), parts.join(" · "));
  const lines = found.lines.length ? found.lines.map(line) : [el("li", {}, el("span", { class: "muted what" }, "Nothing was moved in the versions held."))];
  replace(byId("log-list"), lines);
}

function line(each) {
  const d = each.decision;
  const numbers = d
    ? `${rps(d.moved_rps)} moved · ${d.shed_rps > 0 ? `${rps(d.shed_rps)} shed · ` : ""}${d.took_ms.toFixed(1)} ms`
    : "not recorded";
  const title = d ? `${d.rung}; demand ${rps(d.demand_rps)} of ${rps(d.capacity_rps)} RPS; certified gap ${percent(d.gap, 3)}` : "";
  return el(
    "li",
    {},
    el("span", {}, clock(each.tick_ms, true)),
    el("button", { class: "link", type: "button", onclick: () => set({ version: each.version }), "aria-label": `Look at version ${each.version}` }, `v ${each.version}`),
    el("span", { class: each.status === "HELD" ? "" : "muted" }, inWords(each.status)),
    el("div", { class: "what" }, moves(each)),
    el("span", { class: "numbers number muted", title }, numbers),
  );
}

function moves(each) {
  if (!each.moves.length) return el("span", { class: "muted" }, each.sentence || "nothing moved");
  const told = each.moves.map((move) =>
    el(
      "li",
      {},
      el("b", {}, routeName(move.route)),
      `: ${percent(move.share, 0)} (${rps(move.rps)} RPS) ${side("from", move.lost)} ${side("to", move.gained)} `,
      el("span", { class: "cause" }, move.cause ? `because ${move.cause}` : ""),
    ),
  );
  const more = each.more_moves ? el("li", { class: "muted" }, `and ${whole(each.more_moves)} smaller moves`) : null;
  return el("ul", { class: "moves" }, told, more);
}

function side(word, parts) {
  if (!parts.length) return `${word} nowhere`;
  const names = parts.slice(0, 3).map((part) => (part.engine_id === "!shed" ? "shedding" : part.engine_id));
  return `${word} ${names.join(", ")}${parts.length > 3 ? ` and ${parts.length - 3} more` : ""}`;
}
