// Plotly, dressed as the page is: its colours, its type, no tools of its own, a click travels to that version.
import { cssColour } from "./palette.js";
import { set } from "./state.js";

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false, scrollZoom: false };

export function axis(more = {}) {
  return { gridcolor: cssColour("--line"), linecolor: cssColour("--line"), zeroline: false, fixedrange: true, automargin: true, tickfont: { color: cssColour("--muted"), size: 11 }, ...more };
}

export function layout(height, more = {}) {
  const text = cssColour("--text");
  const surface = cssColour("--surface");
  return {
    height,
    margin: { l: 46, r: 8, t: 8, b: 26 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: text },
    hovermode: "x unified",
    hoverlabel: { bgcolor: surface, bordercolor: cssColour("--line-strong"), font: { color: text, size: 12 } },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12, color: text } },
    dragmode: false,
    uirevision: "same",
    ...more,
  };
}

// Drawing costs more than all the rest of a round together: a chart out of sight is drawn when it comes into sight.
const waiting = new Map();
const inSight = new Set();
const watch = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) inSight.delete(target);
      else inSight.add(target);
      if (isIntersecting && waiting.has(target)) drawNow(target, ...waiting.get(target));
    }
  },
  { rootMargin: "120px" },
);

// Draws, or draws anew in place; `versions` are those of the points, for a click to travel to.
export function draw(node, ...what) {
  waiting.set(node, what);
  watch.observe(node);
  if (inSight.has(node)) drawNow(node, ...what);
}

function drawNow(node, traces, shape, versions) {
  waiting.delete(node);
  const plotly = window.Plotly;
  if (!plotly) return;
  plotly.react(node, traces, shape, CONFIG);
  node.versions = versions;
  if (node.dataset.clicks) return;
  node.dataset.clicks = "yes";
  node.on("plotly_click", (event) => {
    const at = event.points?.[0]?.pointNumber;
    const version = node.versions?.[at];
    if (version !== undefined) set({ version: at === node.versions.length - 1 ? null : version });
  });
}

// Without a zone: Plotly would else turn them into the browser's own time.
const instant = (ms) => new Date(ms).toISOString().slice(0, -1);
export const times = (ticks) => ticks.map(instant);

// A line where the version is that is looked at.
export function marker(versions, ticks, version) {
  if (version === null) return [];
  let i = versions.findIndex((each) => each >= version);
  if (i < 0) i = versions.length - 1;
  const x = instant(ticks[i]);
  return [{ type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, line: { color: cssColour("--accent"), width: 1.5, dash: "dot" } }];
}
