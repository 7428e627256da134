// Every engine, or the engines gathered by site or model: load against capacity, how each stands, its own words.
import { byId, choice, el, panelHead, replace } from "./dom.js";
import { DASH, percent, rps, whole } from "./format.js";
import { openEngine } from "./engine_card.js";
import { ORDER, STANDINGS, inWords } from "./words.js";
import { VirtualTable, bar, text } from "./virtual_table.js";

let table = null;
let gathered = "none";
let sought = "";
let rows = [];
let zoomed = null;
let search = null;

export function startEngines() {
  table = new VirtualTable("Engines", columns(), { open: openRow, empty: "No engine is like that.", height: 430, sortBy: 2 });
  search = el("input", { class: "search", type: "search", placeholder: "Find: id, site, out, stale…", "aria-label": "Find engines" });
  search.addEventListener("input", () => find(search.value));
  const groups = choice("Gather by", [["none", "Each"], ["site", "By site"], ["models", "By model"]], gathered, (by) => {
    gathered = by;
    zoomed = null;
    arrange();
  });
  const about = el("span", { class: "about", id: "engines-about" });
  replace(byId("engines"), panelHead("engines-head", "Engines", about, search, groups), table.node);
}

export function filterEngines(words) {
  search.value = words;
  find(words);
  byId("engines").scrollIntoView({ block: "start" });
  table.node.focus();
}

function find(words) {
  sought = words.trim().toLowerCase();
  arrange();
}

export function showEngines(found) {
  rows = found.engine_id.map((id, i) => ({
    key: id,
    id,
    site: found.site[i] ?? DASH,
    models: found.models[i] || DASH,
    standing: found.standing[i],
    reason: found.reason[i],
    load: found.load_rps[i],
    capacity: found.capacity_rps[i],
    nominal: found.nominal[i],
    use: found.utilisation[i],
    ready: found.replicas_ready[i],
    desired: found.replicas_desired[i],
    waiting: found.waiting[i],
    kv: found.kv_usage[i],
    engines: 1,
  }));
  arrange();
}

function arrange() {
  const words = sought.split(/\s+/).filter(Boolean);
  const text = (row) => `${row.id} ${row.site} ${row.models} ${STANDINGS[row.standing].word} ${inWords(row.reason)}`.toLowerCase();
  let kept = zoomed ? rows.filter((row) => row[zoomed.by] === zoomed.value) : rows;
  if (words.length) kept = kept.filter((row) => words.every((word) => text(row).includes(word)));
  const told = kept.length === rows.length ? `${whole(rows.length)}` : `${whole(kept.length)} of ${whole(rows.length)}`;
  const many = gathered !== "none" && !zoomed;
  const back = el("button", { class: "link", type: "button", onclick: () => { zoomed = null; arrange(); } }, "all");
  replace(byId("engines-about"), told, zoomed ? [` in ${zoomed.value} · `, back] : null);
  table.take(many ? gather(kept, gathered) : kept);
}

// One row for all engines of a site or model; sums, and the worst standing that any of them has.
function gather(kept, by) {
  const groups = new Map();
  for (const row of kept) {
    const found = groups.get(row[by]) ?? { ...row, key: row[by], id: row[by], group: by, engines: 0, load: 0, capacity: 0, nominal: false, ready: null, desired: null, waiting: null, kv: null, out: 0, standing: "IDLE", reason: "" };
    found.engines += 1;
    found.load += row.load;
    if (row.standing !== "OUT") found.capacity += row.capacity ?? 0;
    found.out += row.standing === "OUT" ? 1 : 0;
    for (const column of ["ready", "desired", "waiting"]) if (row[column] !== null) found[column] = (found[column] ?? 0) + row[column];
    if (row.kv !== null) found.kv = Math.max(found.kv ?? 0, row.kv);
    if (ORDER.indexOf(row.standing) < ORDER.indexOf(found.standing)) found.standing = row.standing;
    found.site = by === "site" ? row.site : `${found.engines} engines`;
    found.models = by === "models" ? row.models : `${found.engines} engines`;
    groups.set(row[by], found);
  }
  for (const group of groups.values()) {
    group.use = group.capacity > 0 ? group.load / group.capacity : null;
    group.reason = group.out ? `${group.out} out` : "";
  }
  return [...groups.values()];
}

function openRow(row) {
  if (!row.group) return openEngine(row.id);
  zoomed = { by: row.group, value: row.id };
  return arrange();
}

function columns() {
  const standing = (row) => STANDINGS[row.standing];
  return [
    { name: "Engine", width: "minmax(104px, 2fr)", least: 104, sort: (row) => row.id, show: text((row) => row.id) },
    {
      name: "Standing",
      width: "minmax(122px, 1.4fr)",
      least: 122,
      sort: (row) => ORDER.indexOf(row.standing),
      show: (cell, row) => {
        const worst = row.group && row.engines > 1 ? "some " : "";
        cell.dataset.standing = row.standing;
        cell.textContent = `${standing(row).mark} ${worst}${standing(row).word}${row.reason && row.standing !== "FULL" ? `, ${inWords(row.reason)}` : ""}`;
        cell.title = cell.textContent;
      },
    },
    { name: "Load/capacity", width: "minmax(122px, 1.4fr)", least: 122, number: true, sort: (row) => row.use ?? (row.load > 0 ? 2 : -1), make: bar.make, show: bar.show((row) => row.use, (row) => percent(row.use, 0), (row) => row.standing) },
    { name: "Load", width: "64px", least: 64, number: true, sort: (row) => row.load, show: text((row) => rps(row.load)) },
    { name: "Capacity", width: "80px", least: 80, number: true, sort: (row) => row.capacity, show: text((row) => (row.nominal && row.capacity !== null ? `(${rps(row.capacity)})` : rps(row.capacity))) },
    { name: "Site", width: "minmax(80px, 1fr)", least: 80, sort: (row) => row.site, show: text((row) => row.site) },
    { name: "Model", width: "minmax(90px, 1.2fr)", least: 90, sort: (row) => row.models, show: text((row) => row.models) },
    { name: "Replicas", width: "76px", least: 76, number: true, sort: (row) => row.ready, show: text((row) => (row.ready === null ? DASH : row.desired === null || row.desired === row.ready ? whole(row.ready) : `${row.ready}/${row.desired}`)) },
    { name: "Waiting", width: "72px", least: 72, number: true, sort: (row) => row.waiting, show: text((row) => (row.waiting === null ? DASH : whole(row.waiting))) },
    { name: "KV", width: "56px", least: 56, number: true, sort: (row) => row.kv, show: text((row) => percent(row.kv, 0)) },
  ];
}
