// The top line: how far what is shown is to be believed, and which version it is; the banner, where something is wrong.
import { byId, el, replace } from "./dom.js";
import { clock, duration } from "./format.js";
import { look, nowMs, set } from "./state.js";
import { LIVENESS } from "./words.js";

let shown = null;

export function showHeader(overview = shown) {
  shown = overview;
  const { status, lost, version } = look();
  const word = lost ? "CONSOLE_LOST" : (status?.liveness ?? "READING");
  const { word: name, mark, tone } = LIVENESS[word];
  const said = lost ? "The console's own server does not answer; trying again" : (status?.sentence ?? "");
  const chip = el("span", { class: "chip", data: { tone } }, el("span", { "aria-hidden": "true" }, mark), name);
  const state = byId("state");
  // Written only where it differs: a screen reader reads every change out.
  if (state.dataset.said !== word + said) {
    state.dataset.said = word + said;
    replace(state, chip, el("span", { class: "said", title: said }, said));
  }
  document.title = `${name === "Live" ? "" : `${name}: `}headrace`;
  showVersion(overview, version);
  showBanner(word, said, overview, version);
}

function showVersion(overview, version) {
  const box = byId("version");
  if (!overview) return replace(box);
  const age = duration(nowMs() - overview.tick_ms);
  const { tick_ms: tick, policy, status } = overview;
  return replace(
    box,
    "version ",
    el("b", { id: "shown-version" }, String(overview.version)),
    ` · ${status.toLowerCase()} · ${policy} · `,
    el("b", {}, clock(tick, true)),
    " UTC",
    version === null ? ` · ${age} old` : ` · ${age} ago`,
  );
}

function showBanner(word, said, overview, version) {
  const banner = byId("banner");
  const parts = [];
  let tone = "info";
  if (version !== null && overview) {
    parts.push(
      el("strong", {}, `Looking back: version ${overview.version}, ${clock(overview.tick_ms)}.`),
      el("span", {}, "Engines' own words are of now only, and not shown."),
      el("button", { type: "button", class: "quiet", onclick: () => set({ version: null }) }, "Back to live (Esc)"),
    );
  }
  if (overview && (word === "BROKER_LOST" || word === "CONSOLE_LOST" || word === "EXPIRED" || word === "STALE")) {
    tone = word === "STALE" ? "warn" : "bad";
    const last = ` What is shown is version ${overview.version} of ${clock(overview.tick_ms)}.`;
    parts.unshift(el("span", {}, el("strong", {}, said), `.${last}`));
  }
  banner.dataset.tone = tone;
  banner.hidden = parts.length === 0;
  const text = parts.map((part) => part.textContent).join(" ");
  if (banner.dataset.said !== text) {
    banner.dataset.said = text;
    replace(banner, parts);
  }
}
