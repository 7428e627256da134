// The fleet in six numbers, each with how it went.
import { byId, el, replace } from "./dom.js";
import { stack } from "./health.js";
import { DASH, counted, percent, rps, whole } from "./format.js";
import { spark } from "./spark.js";

let series = null;

export function takeSeries(found) {
  series = found;
}

export function showTiles(overview) {
  const t = overview.totals;
  const engines = Object.fromEntries(overview.standings.map((each) => [each.standing, each.engines]));
  const all = Object.values(engines).reduce((sum, each) => sum + each, 0);
  const shed = t.demand_rps > 0 ? t.shed_rps / t.demand_rps : 0;
  const use = t.capacity_rps ? (t.demand_rps - t.shed_rps) / t.capacity_rps : null;
  const moved = t.moved_rps === null || !t.demand_rps ? null : t.moved_rps / t.demand_rps;
  replace(
    byId("tiles"),
    tile("Demand", rps(t.demand_rps), "RPS", `${counted(overview.clusters.length, "cluster")}, ${counted(overview.routes, "route")}`, "demand_rps"),
    tile("Capacity in use", percent(use), "", `of ${rps(t.capacity_rps)} RPS counted`, "use", tone(use, 0.8, 0.95)),
    tile("Shed", rps(t.shed_rps), "RPS", shed > 0 ? `${percent(shed)} of the demand` : "nothing is refused", "shed_rps", shed > 0 ? "bad" : ""),
    tile("Moved by this tick", rps(t.moved_rps), "RPS", moved === null ? "not recorded" : `${percent(moved)} of the demand`, "moved_rps"),
    tile("Retry budget", percent(t.retry_ratio), "", `a route has ${percent(t.retry_ratio_min)} at least`, "retry_ratio", t.retry_ratio === 0 ? "warn" : ""),
    tile("Engines", whole(engines.SERVING + engines.FULL + engines.LIMITED), `of ${whole(all)} in use`, engineWords(engines), stack(engines), engines.OUT ? "warn" : ""),
  );
}

function engineWords(engines) {
  const parts = [];
  if (engines.OUT) parts.push(`✕ ${whole(engines.OUT)} out`);
  if (engines.FULL) parts.push(`▲ ${whole(engines.FULL)} full`);
  if (engines.LIMITED) parts.push(`◆ ${whole(engines.LIMITED)} limited`);
  return parts.join(", ") || "none out, none limited";
}

const tone = (value, warn, bad) => (value === null ? "" : value >= bad ? "bad" : value >= warn ? "warn" : "");

function tile(name, value, unit, more, column, colour = "") {
  const parts = value === DASH ? [value] : [value, unit ? el("small", {}, unit) : null];
  return el(
    "div",
    { class: "tile", data: { tone: colour } },
    el("div", { class: "name" }, name),
    el("div", { class: "value" }, parts),
    el("div", { class: "more", title: more }, more),
    typeof column === "string" ? series && spark(columnOf(column)) : column,
  );
}

function columnOf(column) {
  if (column !== "use") return series[column];
  return series.demand_rps.map((demand, i) =>
    series.capacity_rps[i] ? (demand - series.shed_rps[i]) / series.capacity_rps[i] : null,
  );
}
