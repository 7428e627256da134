// Traffic over time: demand under capacity, what was moved and shed, what may be retried.
import { axis, draw, layout, marker, times } from "./charts.js";
import { byId, el, panelHead, replace } from "./dom.js";
import { duration } from "./format.js";
import { cssColour, line } from "./palette.js";
import { look } from "./state.js";

let last = null;

export function startTraffic() {
  const about = el("span", { class: "about", id: "traffic-about" });
  const chart = el("div", { class: "chart", id: "traffic-chart", role: "img", "aria-label": "Demand, capacity, moved and shed traffic and the retry budget over time; the same numbers stand in the decision log" });
  replace(byId("traffic"), panelHead("traffic-head", "Traffic over time", about), el("div", { class: "body" }, chart));
}

export function showTraffic(series = last) {
  if (!series) return;
  last = series;
  const x = times(series.tick_ms);
  const span = series.tick_ms.length ? series.tick_ms.at(-1) - series.tick_ms[0] : 0;
  const bins = series.every > 1 ? `, ${series.every} versions a point` : "";
  replace(byId("traffic-about"), `the last ${duration(span)}${bins} · RPS, and share of retries`);
  const named = (i, name, y, more = {}) => ({ x, y, name, type: "scatter", mode: "lines", line: { ...line(i), width: 1.75 }, hovertemplate: "%{y:.1f}", ...more });
  const traces = [
    named(0, "Demand", series.demand_rps),
    named(7, "Capacity", series.capacity_rps, { line: { color: cssColour("--muted"), width: 1.5, dash: "dot" } }),
    { x, y: series.moved_rps, name: "Moved", type: "bar", yaxis: "y2", marker: { color: cssColour("--limited-fill") }, hovertemplate: "%{y:.1f}" },
    named(1, "Shed", series.shed_rps, { yaxis: "y2", fill: "tozeroy", fillcolor: "rgba(213,94,0,0.15)" }),
    named(2, "Retry budget", series.retry_ratio, { yaxis: "y3", hovertemplate: "%{y:.1%}" }),
  ];
  const shape = layout(300, {
    xaxis: axis({ anchor: "y3", showgrid: false, type: "date" }),
    yaxis: axis({ domain: [0.54, 1], rangemode: "tozero", nticks: 4 }),
    yaxis2: axis({ domain: [0.25, 0.46], rangemode: "tozero", nticks: 3 }),
    yaxis3: axis({ domain: [0, 0.17], rangemode: "tozero", tickformat: ".0%", nticks: 3 }),
    bargap: 0,
    shapes: marker(series.versions, series.tick_ms, look().version),
  });
  draw(byId("traffic-chart"), traces, shape, series.versions);
}
