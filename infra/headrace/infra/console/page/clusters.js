// Every cluster: what it asks for, what of it is refused, what it may retry. A click looks at it alone.
import { byId, el, panelHead, replace } from "./dom.js";
import { percent, rps, whole } from "./format.js";
import { look, set } from "./state.js";
import { VirtualTable, bar, text } from "./virtual_table.js";

let table = null;

export function startClusters() {
  const open = (row) => set({ cluster: look().cluster === row.key ? null : row.key, route: null });
  table = new VirtualTable("Clusters", columns(), { open, empty: "There is no cluster.", height: 430, sortBy: 1 });
  replace(byId("clusters"), panelHead("clusters-head", "Clusters", el("span", { class: "about", id: "clusters-about" })), table.node);
}

export function showClusters(clusters) {
  const most = Math.max(1e-9, ...clusters.map((each) => each.demand_rps));
  table.take(clusters.map((each) => ({ ...each, key: each.cluster, part: each.demand_rps / most })));
  replace(byId("clusters-about"), whole(clusters.length));
}

function columns() {
  const shed = (row) => (row.demand_rps > 0 ? row.shed_rps / row.demand_rps : 0);
  return [
    { name: "Cluster", width: "minmax(90px, 1.4fr)", least: 90, sort: (row) => row.cluster, show: text((row) => row.cluster) },
    { name: "Demand", width: "minmax(110px, 1.5fr)", least: 110, number: true, sort: (row) => row.demand_rps, make: bar.make, show: bar.show((row) => row.part, (row) => rps(row.demand_rps)) },
    { name: "Shed", width: "66px", least: 66, number: true, sort: shed, show: text((row) => (row.shed_rps > 0 ? percent(shed(row)) : "0")) },
    { name: "Retry", width: "58px", least: 58, number: true, sort: (row) => row.retry_ratio_min, show: text((row) => percent(row.retry_ratio_min)) },
    { name: "Engines", width: "72px", least: 72, number: true, sort: (row) => row.engines, show: text((row) => whole(row.engines)) },
  ];
}
