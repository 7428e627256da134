// Why a weight is what it is: the answer of `headrace explain`, as it came from the solver's own code.
import { ask } from "./api.js";
import { el } from "./dom.js";
import { isAwaited, note, openDrawer, part, plainList } from "./drawer.js";
import { clock, day, ms, percent } from "./format.js";
import { look, set } from "./state.js";
import { inWords } from "./words.js";

const TERMS = [
  ["network_ms", "Network", "the round trip"],
  ["engine_ms", "Engine", "its own latency at its planned load"],
  ["congestion_ms", "Congestion", "what it adds to the others' waiting there"],
  ["scarcity_ms", "Scarcity", "what its room is worth, where it is full"],
  ["move_ms", "Move", "for leaving a warm cache"],
];

export async function openWhy({ cluster, model, request_class, engine_id }) {
  const { version } = look();
  const title = `Why ${engine_id}?`;
  const route = `${cluster} · ${model} · ${request_class}`;
  const mine = openDrawer(title, route, note("Computing the tick again, from what the solver had read…"));
  let answer;
  try {
    answer = await ask("explain", { version, cluster, engine: engine_id, model, class: request_class });
  } catch (error) {
    if (isAwaited(mine)) openDrawer(title, route, note(`No answer: ${error.message}`));
    return;
  }
  if (isAwaited(mine)) show(answer, route);
}

function show(answer, route) {
  const under = `${route} · version ${answer.version}, ${day(answer.tick_ms)} · ${percent(answer.weight_ppm / 1e6)} of ${answer.demand_rps.toFixed(1)} RPS`;
  openDrawer(
    `Why ${answer.engine_id}?`,
    under,
    part(null, el("ul", { class: "sentences", id: "why-sentences" }, answer.sentences.map((sentence) => el("li", {}, sentence)))),
    answer.terms_ms ? part("What one more request costs here", terms(answer)) : null,
    answer.alternatives.length ? part("Not used, and by how much too dear", plainList(answer.alternatives.map(alternative))) : null,
    answer.binding.length ? part("What binds", plainList(answer.binding)) : null,
    answer.others_excluded.length ? part("Excluded", plainList(answer.others_excluded.map((each) => `${each.engine_id}: ${inWords(each.reason)}, ${each.sentence}`))) : null,
    answer.protections.length ? part("Protections that acted", plainList(answer.protections.map((each) => `${each.engine_id}: ${each.sentence} (${each.protection}, × ${each.factor.toFixed(2)})`))) : null,
    part("How this weight came here", steps(answer.history)),
    part(null, el("p", { class: "muted" }, proof(answer))),
  );
}

function terms(answer) {
  const found = answer.terms_ms;
  const sum = found.marginal_ms;
  const rows = TERMS.map(([key, name, said]) => {
    const share = sum > 0 ? Math.max(0, found[key]) / sum : 0;
    const meter = el("u", { "aria-hidden": "true" }, el("i", { style: { transform: `scaleX(${Math.min(1, share)})` } }));
    return el("tr", {}, el("td", {}, name, el("div", { class: "muted" }, said)), el("td", { class: "meter" }, meter), el("td", { class: "number" }, ms(found[key])));
  });
  const paid = answer.route_marginal_ms === null ? "" : `the route pays ${ms(answer.route_marginal_ms)}`;
  rows.push(el("tr", { class: "sum" }, el("td", {}, "Together"), el("td", { class: "muted" }, paid), el("td", { class: "number" }, ms(sum))));
  return el("table", { class: "terms" }, el("tbody", {}, rows));
}

function alternative(each) {
  const more = each.engine_ids.length > 1 ? ` and ${each.engine_ids.length - 1} more` : "";
  // What rounds to nothing is a tie; below it is what a pin, or weights that stand, keep from being used.
  const dearer = Math.abs(each.gap_ms) < 0.05 ? "just as dear" : `${ms(Math.abs(each.gap_ms))} ${each.gap_ms > 0 ? "too dear" : "cheaper"}`;
  return `${each.engine_ids[0]}${more} in ${each.site}: ${dearer}`;
}

function steps(history) {
  if (!history.length) return el("p", { class: "muted" }, "It did not change in the ten minutes before.");
  const rows = history.slice(-12).reverse().map((step) =>
    el(
      "li",
      {},
      el("button", { class: "link", type: "button", title: `version ${step.version}`, onclick: () => set({ version: step.version }) }, clock(step.tick_ms)),
      el("span", {}, `${percent(step.before_ppm / 1e6)} → ${percent(step.after_ppm / 1e6)}`),
      el("span", { class: "said muted" }, step.sentence),
    ),
  );
  return el("ol", { class: "steps" }, rows);
}

function proof(answer) {
  if (!answer.computed_again) return "Computed again it comes out otherwise: its inputs or its settings are not all held any more.";
  if (!answer.inputs_proved) return "Computed again to the same weights; its inputs are not proved to be those that it was made from.";
  return "Computed again by the solver's own code, to the same weights, from inputs proved by digest to be those that it had read.";
}
