// The flow map: ribbons from clusters (or one cluster's routes) to sites, models or engines, as wide as what flows.
import { byId, choice, el, panelHead, replace, svg } from "./dom.js";
import { percent, rps, nameOf } from "./format.js";
import { openEngine } from "./engine_card.js";
import { look, set } from "./state.js";

const GAP = 8;
const LEAST = 15;
const BAR = 9;
const HEAD = 22;
let last = null;
let picker = null;

export function startFlowMap() {
  picker = el("select", { "aria-label": "Cluster", onchange: () => set({ cluster: picker.value || null, route: null }) });
  const groups = choice("Gather engines by", [["site", "Sites"], ["model", "Models"], ["engine", "Engines"]], look().group, (group) => set({ group }));
  const about = el("span", { class: "about", id: "flows-about" });
  replace(byId("flows"), panelHead("flows-head", "Flow", about, picker, groups), el("div", { class: "body", id: "flows-body" }));
  new ResizeObserver(() => last && draw(last)).observe(byId("flows-body"));
}

export function takeClusters(clusters) {
  const { cluster } = look();
  const names = clusters.map((each) => each.cluster);
  if (cluster !== null && !names.includes(cluster)) names.push(cluster);
  names.sort();
  const wanted = ["", ...names].join("\n");
  if (picker.dataset.names !== wanted) {
    picker.dataset.names = wanted;
    replace(picker, el("option", { value: "" }, "All clusters"), names.map((name) => el("option", { value: name }, name)));
  }
  picker.value = cluster ?? "";
}

export function showFlowMap(map) {
  last = map;
  draw(map);
}

function draw(map) {
  const body = byId("flows-body");
  const total = map.sources.reduce((sum, node) => sum + node.rps, 0);
  const from = map.cluster === null ? "Clusters" : "Routes";
  const to = { site: "Sites", model: "Models", engine: "Engines" }[map.group];
  replace(byId("flows-about"), map.cluster === null ? `${rps(total)} RPS` : `${rps(total)} RPS of ${map.cluster}`);
  if (total <= 0) return replace(body, el("p", { class: "nothing" }, "Nothing flows: there is no demand."));
  const width = Math.max(280, body.clientWidth - 24);
  const longest = Math.max(...[...map.sources, ...map.targets].map((node) => nameOf(node.name).length), 8);
  const side = Math.min(width * 0.3, Math.max(92, 7 * longest + 72));
  const room = Math.max(300, Math.min(560, HEAD + 27 * Math.max(map.sources.length, map.targets.length, 6)));
  const left = place(map.sources, room);
  const right = place(map.targets, room);
  const height = Math.max(left.height, right.height) + 4;
  const box = svg("svg", { class: "flow", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `Flow from ${from} to ${to}` });
  box.append(
    svg("text", { class: "column", x: side, y: 12, "text-anchor": "end" }, from),
    svg("text", { class: "column", x: width - side, y: 12 }, to),
  );
  for (const ribbon of ribbons(map, left, right, side, width)) box.append(ribbon);
  for (const node of left.nodes) box.append(drawNode(node, total, { x: side, end: true, box, side: "source", act: actOf(map, node, "source") }));
  for (const node of right.nodes) box.append(drawNode(node, total, { x: width - side - BAR, end: false, box, side: "target", act: actOf(map, node, "target") }));
  return replace(body, box);
}

function place(nodes, room) {
  const total = nodes.reduce((sum, node) => sum + node.rps, 0) || 1;
  const free = room - HEAD - GAP * (nodes.length - 1) - LEAST * nodes.length;
  let y = HEAD;
  const placed = nodes.map((node) => {
    const height = LEAST + Math.max(0, (free * node.rps) / total);
    const at = { ...node, y, height, used: 0 };
    y += height + GAP;
    return at;
  });
  return { nodes: placed, height: y - GAP, byName: new Map(placed.map((node) => [node.name, node])) };
}

function* ribbons(map, left, right, side, width) {
  const ordered = [...map.flows].sort((a, b) => order(left, a.source) - order(left, b.source) || order(right, a.target) - order(right, b.target));
  const drawn = [];
  for (const flow of ordered) {
    const a = left.byName.get(flow.source);
    const b = right.byName.get(flow.target);
    const ha = (a.height * flow.rps) / a.rps;
    const hb = (b.height * flow.rps) / b.rps;
    drawn.push({ flow, y0: a.y + a.used, ha, b, hb });
    a.used += ha;
  }
  for (const each of drawn) {
    const { flow, y0, ha, b, hb } = each;
    const y1 = b.y + b.used;
    b.used += hb;
    const x0 = side + BAR + 1;
    const x1 = width - side - BAR - 1;
    const mid = (x0 + x1) / 2;
    const d = `M${x0} ${y0}C${mid} ${y0} ${mid} ${y1} ${x1} ${y1}V${y1 + hb}C${mid} ${y1 + hb} ${mid} ${y0 + ha} ${x0} ${y0 + ha}Z`;
    const shed = flow.target === "!shed";
    const title = `${nameOf(flow.source)} to ${nameOf(flow.target)}: ${rps(flow.rps)} RPS`;
    yield svg("path", { class: shed ? "ribbon shed" : "ribbon", d, data: { source: flow.source, target: flow.target } }, svg("title", {}, title));
  }
}

const order = (side, name) => side.nodes.findIndex((node) => node.name === name);

function actOf(map, node, side) {
  if (node.name.startsWith("!")) return null;
  if (side === "source" && map.cluster === null) return () => set({ cluster: node.name, route: null });
  if (side === "source") return () => set({ route: `${map.cluster}|${node.name}` });
  if (map.group === "engine") return () => openEngine(node.name);
  return null;
}

function drawNode(node, total, { x, end, box, side, act }) {
  const label = node.name === "!others" ? `${node.names} others` : nameOf(node.name);
  const anchor = end ? "end" : "start";
  const tx = end ? x - 7 : x + BAR + 7;
  const two = node.height >= 30;
  const cy = node.y + node.height / 2;
  const chars = Math.floor((end ? x - 12 : box.viewBox.baseVal.width - tx) / 6.6) - (two ? 0 : 7);
  const name = label.length > chars ? `${label.slice(0, Math.max(3, chars - 1))}…` : label;
  const flow = rps(node.rps);
  const said = `${label}: ${flow} RPS, ${percent(node.rps / total)}`;
  const texts = two
    ? [
        svg("text", { class: "name", x: tx, y: cy - 2, "text-anchor": anchor }, name),
        svg("text", { class: "rps", x: tx, y: cy + 13, "text-anchor": anchor }, `${flow} · ${percent(node.rps / total, 0)}`),
      ]
    : [
        svg("text", { class: "name", x: tx, y: cy + 4, "text-anchor": anchor }, name, svg("tspan", { class: "rps", dx: 6 }, flow)),
      ];
  const hit = svg("rect", { class: "hit", x: end ? 1 : x, y: node.y, width: end ? x + BAR - 1 : box.viewBox.baseVal.width - x - 1, height: node.height, rx: 3 });
  const bar = svg("rect", { class: node.name === "!shed" ? "node shed" : "node", x, y: node.y, width: BAR, height: node.height, rx: 2 });
  const pick = (on) => () => {
    box.classList.toggle("picked", on);
    for (const ribbon of box.querySelectorAll(".ribbon")) ribbon.classList.toggle("on", on && ribbon.dataset[side] === node.name);
  };
  const given = { onmouseenter: pick(true), onmouseleave: pick(false), data: { flow: `${side}:${node.name}` } };
  if (act) {
    Object.assign(given, { role: "button", tabindex: 0, "aria-label": said, onclick: act, onfocus: pick(true), onblur: pick(false) });
    given.onkeydown = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act();
    };
  }
  return svg("g", given, svg("title", {}, said), bar, texts, hit);
}
