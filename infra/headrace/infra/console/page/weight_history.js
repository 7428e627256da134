// One route's weights over time: a step line for each engine, told apart by dash as well as by colour.
import { axis, draw, layout, marker, times } from "./charts.js";
import { byId, el, panelHead, replace } from "./dom.js";
import { nameOf, routeName } from "./format.js";
import { line } from "./palette.js";
import { look, set } from "./state.js";

let last = null;
let picker = null;

export function startHistory() {
  picker = el("select", { "aria-label": "Route", onchange: () => set({ route: picker.value }) });
  const chart = el("div", { class: "chart", id: "history-chart", role: "img", "aria-label": "Share of the route's requests that each engine gets, over time; the numbers of a version stand in the table of weights" });
  replace(byId("history"), panelHead("history-head", "Weights over time", null, picker), el("div", { class: "body" }, chart));
}

// The routes that can be chosen: those of the weights in sight.
export function takeRoutes(rows) {
  const keys = [...new Set(rows.map((row) => [row.cluster, row.model, row.request_class].join("|")))].slice(0, 200);
  const chosen = look().route ?? keys[0] ?? null;
  if (chosen && !keys.includes(chosen)) keys.unshift(chosen);
  const wanted = keys.join("\n");
  if (picker.dataset.names !== wanted) {
    picker.dataset.names = wanted;
    replace(picker, keys.map((key) => el("option", { value: key }, routeName(key))));
  }
  if (chosen) picker.value = chosen;
  return chosen;
}

export function showHistory(found = last) {
  if (!found) return;
  last = found;
  const x = times(found.tick_ms);
  const traces = found.lines.map((each, i) => ({
    x,
    y: each.shares,
    name: nameOf(each.engine_id).slice(0, 40).replaceAll("<", "‹"),
    type: "scatter",
    mode: found.tick_ms.length > 1 ? "lines" : "markers",
    line: { ...line(i), width: 1.75, shape: "hv" },
    hovertemplate: "%{y:.1%}",
  }));
  const shape = layout(292, {
    xaxis: axis({ showgrid: false, type: "date" }),
    yaxis: axis({ tickformat: ".0%", range: [0, 1.02], nticks: 6 }),
    shapes: marker(found.versions, found.tick_ms, look().version),
  });
  draw(byId("history-chart"), traces, shape, found.versions);
}
