// Fleet health: engines by standing, and every reason with how many it concerns.
import { byId, el, panelHead, replace } from "./dom.js";
import { counted, whole } from "./format.js";
import { openEngine } from "./engine_card.js";
import { ORDER, STANDINGS, inWords } from "./words.js";

export function startHealth() {
  const about = el("span", { class: "about", id: "health-about" });
  const body = el("div", { class: "body scroll", id: "health-body", tabindex: 0, role: "region", "aria-label": "Fleet health" });
  replace(byId("health"), panelHead("health-head", "Fleet health", about), body);
}

export function showHealth(overview, filterEngines) {
  const counts = Object.fromEntries(overview.standings.map((each) => [each.standing, each.engines]));
  const all = Object.values(counts).reduce((sum, each) => sum + each, 0);
  replace(byId("health-about"), counted(all, "engine"));
  replace(byId("health-body"), stack(counts), list(counts, filterEngines), reasons(overview.reasons));
}

export function stack(counts) {
  const parts = ORDER.filter((each) => counts[each]).map((each) =>
    el("i", { data: { standing: each }, style: { flexGrow: counts[each] }, title: `${counts[each]} ${STANDINGS[each].word}` }),
  );
  return el("div", { class: "stack", "aria-hidden": "true" }, parts);
}

function list(counts, filterEngines) {
  return el(
    "ul",
    { class: "counts" },
    ORDER.map((each) =>
      el(
        "li",
        { title: STANDINGS[each].said },
        el("span", { class: "mark", "aria-hidden": "true", data: { standing: each } }, STANDINGS[each].mark),
        el("b", {}, whole(counts[each] ?? 0)),
        " ",
        counts[each]
          ? el("button", { class: "link", type: "button", onclick: () => filterEngines(STANDINGS[each].word) }, STANDINGS[each].word)
          : STANDINGS[each].word,
      ),
    ),
  );
}

function reasons(found) {
  const told = found.filter((each) => each.reason !== "");
  if (!told.length) return el("p", { class: "muted" }, "No engine is out, full or limited.");
  return el(
    "ul",
    { class: "reasons" },
    told.map((each) =>
      el(
        "li",
        {},
        el(
          "span",
          { data: { standing: each.standing } },
          el("span", { class: "mark", "aria-hidden": "true" }, STANDINGS[each.standing].mark),
          `${STANDINGS[each.standing].word}: ${inWords(each.reason)}`,
        ),
        el("span", { class: "number" }, whole(each.engines)),
        el(
          "span",
          { class: "said" },
          el("button", { class: "link", type: "button", onclick: () => openEngine(each.engine_id) }, each.engine_id),
          `: ${each.sentence}`,
        ),
      ),
    ),
  );
}
