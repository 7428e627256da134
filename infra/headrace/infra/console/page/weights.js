// The weights: who sends whom how much of a route. A click asks why.
import { byId, el, panelHead, replace } from "./dom.js";
import { percent, rps, whole } from "./format.js";
import { look, set } from "./state.js";
import { VirtualTable, bar, text } from "./virtual_table.js";
import { openWhy } from "./why.js";
import { inWords } from "./words.js";

let table = null;

export function startWeights() {
  table = new VirtualTable("Weights", columns(), { open, empty: "There is no weight here.", height: 330, sortBy: 2 });
  replace(byId("weights"), panelHead("weights-head", "Weights", el("span", { class: "about", id: "weights-about" })), table.node);
}

function open(row) {
  set({ route: `${row.cluster}|${row.model}|${row.request_class}` });
  openWhy(row);
}

export function showWeights(found) {
  const { cluster } = look();
  const more = found.left_out ? `, ${whole(found.left_out)} smaller ones left out` : "";
  replace(byId("weights-about"), `${cluster ? `of ${cluster}` : "the largest of all clusters"}${more} · click one to see why`);
  table.take(found.rows.map((row) => ({ ...row, key: [row.cluster, row.model, row.request_class, row.engine_id].join("|"), step: stepOf(row, found.version) })));
}

// A step is of the version that wrote it; a route that has stood since then has none.
const stepOf = (row, version) => (row.since_version === version ? (row.weight_ppm - row.previous_ppm) / 1e6 : 0);

function columns() {
  const by = (row) => row.step;
  return [
    { name: "Cluster", width: "minmax(80px, 1fr)", least: 80, sort: (row) => row.cluster, show: text((row) => row.cluster) },
    { name: "Engine", width: "minmax(90px, 1.2fr)", least: 90, sort: (row) => row.engine_id, show: text((row) => row.engine_id) },
    { name: "Weight", width: "minmax(120px, 1.3fr)", least: 120, number: true, sort: (row) => row.weight_ppm, make: bar.make, show: bar.show((row) => row.weight_ppm / 1e6, (row) => percent(row.weight_ppm / 1e6)) },
    { name: "Step", width: "60px", least: 60, number: true, sort: by, show: text((row) => (Math.abs(by(row)) < 0.0005 ? "" : `${by(row) > 0 ? "+" : "−"}${(100 * Math.abs(by(row))).toFixed(1)}`)) },
    { name: "RPS", width: "60px", least: 60, number: true, sort: (row) => row.rps, show: text((row) => rps(row.rps)) },
    { name: "Model · class", width: "minmax(90px, 1.2fr)", least: 90, sort: (row) => row.model, show: text((row) => (row.request_class === "default" ? row.model : `${row.model} · ${row.request_class}`)) },
    { name: "Because", width: "minmax(90px, 1fr)", least: 90, sort: (row) => row.reason, show: (cell, row) => { cell.textContent = inWords(row.reason); cell.title = row.sentence; } },
  ];
}
