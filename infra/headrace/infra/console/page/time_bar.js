// The time bar: every version held, under a line of how busy it was; drag, or step, to look back.
import { byId, el, replace, svg } from "./dom.js";
import { clock, counted, duration, whole } from "./format.js";
import { look, nowMs, set } from "./state.js";

let series = null;
let range = null;
let live = null;
let held = null;
let drawing = null;
let dragging = false;

export function startTimeBar() {
  range = el("input", { type: "range", min: 0, max: 0, value: 0, step: 1, "aria-label": "Version looked at" });
  range.addEventListener("input", () => goTo(Number(range.value)));
  range.addEventListener("pointerdown", () => { dragging = true; });
  addEventListener("pointerup", () => { dragging = false; });
  drawing = svg("svg", { viewBox: "0 0 1000 34", preserveAspectRatio: "none", "aria-hidden": "true" });
  live = el("button", { type: "button", class: "quiet", id: "live", "aria-pressed": "true", onclick: () => set({ version: null }) }, "Live");
  held = el("span", { class: "held", id: "held" });
  replace(
    byId("time"),
    el("button", { type: "button", class: "quiet", "aria-label": "One version back", title: "One version back ( [ )", onclick: () => step(-1) }, "‹"),
    el("button", { type: "button", class: "quiet", "aria-label": "One version on", title: "One version on ( ] )", onclick: () => step(1) }, "›"),
    el("div", { class: "track" }, drawing, range),
    live,
    held,
  );
}

function goTo(i) {
  if (!series?.versions.length) return;
  const last = series.versions.length - 1;
  set({ version: i >= last ? null : series.versions[Math.max(0, i)] });
}

export function step(by) {
  const { version, status } = look();
  const newest = status?.version ?? null;
  if (newest === null) return;
  const next = Math.max(status.oldest_version, (version ?? newest) + by);
  set({ version: next >= newest ? null : next });
}

export function takeTimeline(found) {
  series = found;
  draw();
  showTimeBar();
}

export function showTimeBar() {
  const { version, status } = look();
  live.setAttribute("aria-pressed", String(version === null));
  if (!series?.versions.length || !status?.versions_held) {
    range.disabled = true;
    return replace(held, "No version is held yet");
  }
  range.disabled = false;
  const last = series.versions.length - 1;
  range.max = last;
  const at = version === null ? last : Math.max(0, series.versions.findIndex((each) => each >= version));
  if (!dragging) range.value = at;
  const tick = series.tick_ms[at];
  range.setAttribute("aria-valuetext", `version ${version ?? series.versions[last]}, ${clock(tick)}, ${version === null ? "live" : `${duration(nowMs() - tick)} ago`}`);
  const bound = `At most ${whole(status.versions_bound)} versions and ${whole(status.parts_bound)} parts are held; what is older is found by headrace explain --at and headrace tail --since`;
  held.title = bound;
  return replace(held, `${counted(status.versions_held, "version")} held, back to ${clock(status.oldest_tick_ms)}`);
}

function draw() {
  const many = series.versions.length;
  if (many < 2) return replace(drawing);
  const top = Math.max(1e-9, ...series.demand_rps);
  const x = (i) => ((i / (many - 1)) * 1000).toFixed(1);
  const path = series.demand_rps.map((rps, i) => `${x(i)} ${(33 - (rps / top) * 24).toFixed(1)}`).join("L");
  const width = Math.max(1.2, 1000 / many);
  const marks = [];
  series.moved_rps.forEach((moved, i) => {
    const share = moved === null ? 0 : moved / Math.max(1e-9, series.demand_rps[i]);
    if (share >= 0.005) marks.push(svg("rect", { class: "spark-moved", x: x(i), y: 34 - Math.min(20, 4 + 60 * share), width, height: 30 }));
    if (series.shed_rps[i] > 0) marks.push(svg("rect", { class: "spark-shed", x: x(i), y: 0, width, height: 4 }));
  });
  return replace(drawing, svg("path", { class: "spark-area", d: `M0 34L${path}L1000 34Z` }), marks, svg("path", { class: "spark", d: `M${path}` }));
}
