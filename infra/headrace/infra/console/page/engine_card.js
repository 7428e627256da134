// One engine in full: how it stands, what it says of itself, what the fleet says of it, and who sends it what.
import { ask } from "./api.js";
import { el } from "./dom.js";
import { isAwaited, note, openDrawer, part, plainList } from "./drawer.js";
import { DASH, duration, percent, routeName, rps, whole } from "./format.js";
import { look, nowMs } from "./state.js";
import { STANDINGS, inWords } from "./words.js";
import { openWhy } from "./why.js";

export async function openEngine(id) {
  const { version } = look();
  const mine = openDrawer(id, "Engine", note("Asking…"));
  try {
    const [card, weights] = await Promise.all([ask("engine", { version, engine: id }), ask("weights", { version, engine: id, limit: 50 })]);
    if (isAwaited(mine)) show(card, weights);
  } catch (error) {
    if (isAwaited(mine)) openDrawer(id, "Engine", note(error.message));
  }
}

function show(card, weights) {
  const { mark, word } = STANDINGS[card.standing];
  const standing = el("span", { data: { standing: card.standing } }, `${mark} ${word}${card.reason ? `, ${inWords(card.reason)}` : ""}`);
  openDrawer(
    card.engine_id,
    `Engine · version ${card.version}`,
    part("How it stands", el("p", {}, standing, card.sentence ? `: ${card.sentence}` : ""), numbers(card)),
    card.protections.length ? part("Protections", plainList(card.protections.map((each) => `${each.sentence} (${each.protection}, × ${each.factor.toFixed(2)})`))) : null,
    part("Who sends it what", senders(weights)),
    part("Its own word", own(card.own)),
    part("The fleet's word", spec(card.spec)),
  );
}

function numbers(card) {
  const nominal = card.nominal_rps === null ? null : ["Ready replicas come to", `${rps(card.nominal_rps)} RPS`];
  return list([
    ["Planned load", `${rps(card.load_rps)} RPS`],
    ["Counted capacity", card.capacity_rps === null ? DASH : `${rps(card.capacity_rps)} RPS`],
    ["Load of capacity", percent(card.utilisation)],
    nominal,
  ]);
}

function senders(weights) {
  const rows = weights.rows.map((row) =>
    el(
      "span",
      {},
      el("button", { class: "link", type: "button", onclick: () => openWhy(row) }, routeName(`${row.cluster}|${row.model}|${row.request_class}`)),
      `: ${percent(row.weight_ppm / 1e6)}, ${rps(row.rps)} RPS. ${row.sentence}`,
    ),
  );
  if (weights.left_out) rows.push(`and ${whole(weights.left_out)} more`);
  for (const each of weights.excluded) rows.push(`Excluded: ${inWords(each.reason)}, ${each.sentence}`);
  return rows.length ? plainList(rows) : el("p", { class: "muted" }, "Nobody sends it anything.");
}

function own(word) {
  if (!word) return el("p", { class: "muted" }, "Nothing is heard of it, or another time is looked at.");
  const latencies = word.latencies
    .filter((each) => each.mean_s !== null)
    .map((each) => [`${inWords(each.metric)} ${each.model}`, `mean ${(1000 * each.mean_s).toFixed(1)} ms, p95 ${each.p95_s === null ? DASH : `${(1000 * each.p95_s).toFixed(1)} ms`}, ${whole(each.count)} requests`]);
  return list([
    ["Last heard", `${duration(nowMs() - word.last_signal_ms)} ago`],
    ["Health", inWords(word.health)],
    ["Replicas ready", `${whole(word.replicas_ready)} of ${whole(word.replicas_desired)}`],
    ["Running, waiting", `${whole(word.running)}, ${whole(word.waiting)}`],
    ["KV cache in use", percent(word.kv_usage)],
    ["Finishing", word.finished_rps === null ? DASH : `${rps(word.finished_rps)} RPS`],
    ["Window covered", percent(word.coverage, 0)],
    word.invalid === "NO" ? null : ["Not valid", inWords(word.invalid)],
    ...latencies,
  ]);
}

function spec(found) {
  if (!found) return el("p", { class: "muted" }, "The fleet does not have it.");
  return list([
    ["Site", found.site],
    ["Models", found.models.join(", ")],
    ["Capabilities", found.capabilities.join(", ") || DASH],
    ["Residency", found.residency.join(", ") || DASH],
    ["Profile", found.profile_id],
    ["Address", found.address ?? DASH],
  ]);
}

function list(rows) {
  return el("dl", {}, rows.filter(Boolean).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]).flat());
}
