// The page put together: events say that there is something new, a round fetches what is looked at, each part shows its.
import { ask } from "./api.js";
import { showActing, startActing } from "./acting.js";
import { showClusters, startClusters } from "./clusters.js";
import { showLog, startLog, wantsEvery } from "./decision_log.js";
import { byId, el, replace } from "./dom.js";
import { startDrawer } from "./drawer.js";
import { filterEngines, showEngines, startEngines } from "./engines.js";
import { showFlowMap, startFlowMap, takeClusters } from "./flow_map.js";
import { showHeader } from "./header.js";
import { showHealth, startHealth } from "./health.js";
import { startKeys } from "./keys.js";
import { follow } from "./live.js";
import { Refresh } from "./refresh.js";
import { heardAt, look, onChange, set } from "./state.js";
import { onTheme, startTheme } from "./theme.js";
import { showTiles, takeSeries } from "./tiles.js";
import { showTimeBar, startTimeBar, takeTimeline } from "./time_bar.js";
import { showTraffic, startTraffic } from "./traffic.js";
import { showHistory, startHistory, takeRoutes } from "./weight_history.js";
import { showWeights, startWeights } from "./weights.js";

const TOP = 12;
const WEIGHTS = 1000;
const refresh = new Refresh(round);
let flowMap = null;
let lastVersion = null;

async function round() {
  const { version, cluster, group, status } = look();
  if (!status || status.version === null || document.hidden) return showEmpty();
  try {
    const [overview, series, flows, engines, weights, log] = await Promise.all([
      ask("overview", { version }),
      ask("totals"),
      ask("flows", { version, cluster, group, top: TOP }),
      ask("engines", { version }),
      ask("weights", { version, cluster, limit: WEIGHTS }),
      ask("decisions", { version, limit: 60, all: wantsEvery() ? "yes" : "no" }),
    ]);
    if (version !== look().version) return refresh.soon();
    byId("empty").hidden = true;
    delete byId("content").dataset.empty;
    show(overview, series, flows, engines, weights, log);
    const route = takeRoutes(weights.rows);
    if (route) await showRoute(route);
  } catch (error) {
    // A version that went over the edge of what is held while it was looked at: back to the present.
    if (error.status === 404 && version !== null) set({ version: null });
    else if (error.status !== 0 && error.name !== "AbortError") throw error;
  }
  return undefined;
}

function show(overview, series, flows, engines, weights, log) {
  takeSeries(series);
  takeTimeline(series);
  showHeader(overview);
  showTiles(overview);
  takeClusters(overview.clusters);
  flowMap = flows;
  showFlowMap(flows);
  showHealth(overview, filterEngines);
  showEngines(engines);
  showClusters(overview.clusters);
  showWeights(weights);
  showTraffic(series);
  showActing(overview);
  showLog(log);
  byId("content").dataset.version = overview.version;
}

async function showRoute(route) {
  const [cluster, model, requestClass] = route.split("|");
  try {
    showHistory(await ask("history", { cluster, model, class: requestClass }));
  } catch (error) {
    if (error.status === 404) set({ route: null });
  }
}

function showEmpty() {
  const { status, lost } = look();
  if (status?.version !== null && status !== null) return;
  const box = byId("empty");
  const said = lost ? "The console's server does not answer." : (status?.sentence ?? "Connecting…");
  box.hidden = false;
  byId("content").dataset.empty = "yes";
  replace(box, el("h2", {}, "Nothing to show yet"), el("p", {}, said), el("p", {}, "This page fills itself as soon as there is a snapshot."));
}

function onStatus(status) {
  heardAt(status.now_ms);
  const fresh = status.version !== lastVersion || status.liveness !== look().status?.liveness;
  lastVersion = status.version;
  set({ status, lost: false });
  if (fresh || status.version === null) refresh.soon();
}

function start() {
  startTheme();
  startTimeBar();
  startFlowMap();
  startHealth();
  startEngines();
  startClusters();
  startWeights();
  startHistory();
  startTraffic();
  startActing();
  startLog(() => refresh.soon());
  startDrawer();
  startKeys();
  onChange((changed) => {
    showHeader();
    showTimeBar();
    if (changed.some((name) => ["version", "cluster", "route", "group"].includes(name))) refresh.soon();
  });
  onTheme(() => {
    showTraffic();
    showHistory();
    if (flowMap) showFlowMap(flowMap);
  });
  document.addEventListener("visibilitychange", () => refresh.soon());
  setInterval(() => {
    showHeader();
    showTimeBar();
  }, 1000);
  showHeader();
  showEmpty();
  showFoot();
  follow(onStatus, () => set({ lost: true }));
}

async function showFoot() {
  const secured = await fetch("/login", { method: "GET", redirect: "manual", credentials: "same-origin" });
  byId("logout").hidden = secured.type === "opaqueredirect";
  replace(byId("foot"), "Read-only: the console reads topics and writes none. Overrides are said with headrace drain and headrace freeze. ", el("button", { class: "link", type: "button", onclick: () => byId("keys").click() }, "Keys"));
}

start();
