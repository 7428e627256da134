// What acts beside the program: operators' overrides, and protections in force.
import { byId, el, panelHead, replace } from "./dom.js";
import { counted, day, duration, whole } from "./format.js";
import { openEngine } from "./engine_card.js";
import { inWords } from "./words.js";

export function startActing() {
  const about = el("span", { class: "about", id: "acting-about" });
  const body = el("div", { class: "body scroll", id: "acting-body", tabindex: 0, role: "region", "aria-label": "Overrides and protections" });
  replace(byId("acting"), panelHead("acting-head", "Overrides and protections in force", about), body);
}

export function showActing(overview) {
  const now = overview.tick_ms;
  const standing = overview.overrides.filter((each) => each.expires_ms > now && each.made_ms <= now);
  const told = `${counted(standing.length, "override")}, ${counted(overview.protection_count, "protection")}`;
  replace(byId("acting-about"), told);
  replace(byId("acting-body"), overrides(standing, now), protections(overview));
}

function overrides(standing, now) {
  if (!standing.length) return el("p", { class: "muted" }, "No operator's override stands.");
  const rows = standing.map((each) =>
    el(
      "tr",
      {},
      el("td", {}, `${inWords(each.kind)} ${each.target}`),
      el("td", {}, `${each.reason} (${each.author})`),
      el("td", { class: "number", title: day(each.expires_ms) }, `${duration(each.expires_ms - now)} left`),
    ),
  );
  return table(["Override", "Why, and who said so", "Ends"], rows);
}

function protections(overview) {
  if (!overview.protection_count) return el("p", { class: "muted" }, "No protection acts: every engine counts as its profile says.");
  const rows = overview.protections.map((each) =>
    el(
      "tr",
      {},
      el("td", {}, el("button", { class: "link", type: "button", onclick: () => openEngine(each.engine_id) }, each.engine_id)),
      el("td", {}, `${inWords(each.protection)}: ${each.sentence}`),
      el("td", { class: "number" }, `× ${each.factor.toFixed(2)}`),
    ),
  );
  const left = overview.protection_count - overview.protections.length;
  return [
    table(["Engine", "Protection", "Factor"], rows),
    left > 0 ? el("p", { class: "muted" }, `and ${whole(left)} weaker ones; each stands on its engine's card`) : null,
  ];
}

function table(heads, rows) {
  const head = heads.map((name, i) => el("th", { scope: "col", class: i === heads.length - 1 ? "number" : null }, name));
  return el("table", { class: "acts" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows));
}
