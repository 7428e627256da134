"use strict";
// Draws what the document holds; computes nothing. Colours: Okabe and Ito, told apart by most colour-blind readers.
(() => {
  const report = JSON.parse(document.getElementById("document").textContent);
  const palette = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D1F", "#7F7F7F"];
  const dashes = ["solid", "dash", "dot", "dashdot"];
  const start = report.from_ms;
  const closed = report.closed_loop;
  const variants = report.variants;
  const named = new Map(variants.map((variant) => [variant.name, variant]));
  const engines = [...new Set(variants.flatMap((v) => [
    ...Object.keys(v.series.load), ...Object.values(v.series.weights).flatMap(Object.keys)]))].sort();
  const colour = (list, name) => palette[Math.max(0, list.indexOf(name)) % palette.length];
  const names = variants.map((variant) => variant.name);
  const order = [...names].sort();
  const span = (report.to_ms - start) / 1000;
  const unit = span > 7200 ? 3600 : span > 240 ? 60 : 1;
  const times = (series) => series.at_ms.map((at) => closed ? (at - start) / 1000 / unit : new Date(at));
  const timeTitle = closed ? `${{ 3600: "hours", 60: "minutes", 1: "seconds" }[unit]} of simulated time` : "time, UTC";
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const layout = (more) => {
    const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true };
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: css("--ink") },
      margin: { l: 55, r: 12, t: 8, b: 42 }, hovermode: "x unified",
      hoverlabel: { bgcolor: css("--card"), font: { color: css("--ink") } },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      ...more,
      xaxis: { ...axis, ...(more.xaxis || {}) }, yaxis: { ...axis, ...(more.yaxis || {}) },
    };
  };
  const draw = (id, traces, more) => {
    const place = document.getElementById(id);
    if (place) {
      Plotly.react(place, traces, layout(more), { responsive: true, displaylogo: false, displayModeBar: false });
    }
  };
  const line = (name) => ({ color: colour(order, name), width: name === report.recorded ? 3 : 1.8,
    dash: dashes[Math.floor(order.indexOf(name) / palette.length) % dashes.length] });

  // Of a simulation what its users met is drawn; of history, and of an older document, what is scored.
  const seen = (v) => v.met || { ...v.series, ecdf: v.ecdf };
  const together = (id, title, of, from = (v) => v.series) => draw(id, variants.map((v) => ({
    type: "scatter", mode: "lines", name: v.name, x: times(from(v)), y: of(v), line: line(v.name), connectgaps: false,
  })), { xaxis: { title: { text: timeTitle } }, yaxis: { title: { text: title }, rangemode: "tozero" } });

  const cumulative = (values) => { let sum = 0; return values.map((value) => (sum += value)); };

  // Decades only, or 1-2-5 where fewer than two of them are in sight: digits between decades would run together.
  const decades = (values) => {
    const seen = values.filter((value) => value > 0);
    if (!seen.length) { return { type: "log" }; }
    const low = seen.reduce((m, x) => Math.min(m, x)), high = seen.reduce((m, x) => Math.max(m, x));
    const powers = [];
    for (let n = Math.floor(Math.log10(low)); n <= Math.ceil(Math.log10(high)); n += 1) { powers.push(10 ** n); }
    const whole = powers.filter((power) => low <= power && power <= high).length >= 2;
    const tickvals = whole ? powers : powers.flatMap((power) => [power, 2 * power, 5 * power]);
    return { type: "log", tickmode: "array", tickvals, ticktext: tickvals.map((v) => v.toLocaleString("en")) };
  };

  const overview = () => {
    together("latency", "mean end to end, ms", (v) => seen(v).mean_ms, seen);
    together("moved", "traffic moved so far, % of all", (v) => cumulative(v.series.moved_percent));
    together("unserved", "shed or refused, %", (v) => seen(v).unserved_percent, seen);
    draw("ecdf", variants.filter((v) => seen(v).ecdf.length).map((v) => ({
      type: "scatter", mode: "lines", name: v.name, line: { ...line(v.name), shape: "hv" },
      x: seen(v).ecdf.map((point) => 1000 * point[0]), y: seen(v).ecdf.map((point) => point[1]),
    })), { hovermode: "closest", xaxis: { ...decades(variants.flatMap((v) => seen(v).ecdf.map((point) => 1000 * point[0]))),
      title: { text: "end to end, ms" } },
      yaxis: { title: { text: "share of requests at or below" }, range: [0, 1.02] } });
  };

  const loads = (id, variant, top) => draw(id, Object.entries(variant.series.load).map(([engine, values]) => ({
    type: "scatter", mode: "lines", name: engine, x: times(variant.series), y: values,
    line: { color: colour(engines, engine), width: 1.6 },
  })), { xaxis: { title: { text: timeTitle } }, yaxis: { title: { text: "load / capacity" }, range: [0, top] } });

  const weights = (id, variant, route) => {
    const held = variant.series.weights[route] || {};
    draw(id, Object.entries(held).map(([engine, values]) => ({
      type: "scatter", mode: "lines", name: engine, stackgroup: "one", x: times(variant.series), y: values,
      line: { color: colour(engines, engine), width: 0.6, shape: "hv" }, fillcolor: colour(engines, engine) + "B0",
    })), { xaxis: { title: { text: timeTitle } }, yaxis: { title: { text: "share of the route" }, range: [0, 1.001] } });
  };

  const movedBars = (id, variant, top) => draw(id, [{
    type: "bar", name: "moved", x: times(variant.series), y: variant.series.moved_percent,
    marker: { color: colour(order, variant.name) },
  }], { bargap: 0, xaxis: { title: { text: timeTitle } },
    yaxis: { title: { text: `moved per ${variant.series.bin_s} s, %` }, range: [0, top] } });

  const flows = (id, variant) => {
    const shown = [...variant.flows].sort((a, b) => b.requests - a.requests).slice(0, 60);
    const clusters = [...new Set(shown.map((flow) => flow.cluster))].sort();
    const targets = [...new Set(shown.map((flow) => flow.engine))].sort();
    const labels = [...clusters, ...targets];
    const ink = css("--soft");
    draw(id, shown.length ? [{
      type: "sankey", arrangement: "snap", textfont: { color: css("--ink"), shadow: "none" },
      node: { label: labels, pad: 14, thickness: 14, line: { width: 0 },
        color: labels.map((label, i) => i < clusters.length ? ink : colour(engines, label)),
        hovertemplate: "%{label}: %{value:,.0f} requests<extra></extra>" },
      link: { source: shown.map((flow) => clusters.indexOf(flow.cluster)),
        target: shown.map((flow) => clusters.length + targets.indexOf(flow.engine)),
        value: shown.map((flow) => flow.requests), color: shown.map((flow) => colour(engines, flow.engine) + "70"),
        hovertemplate: "%{source.label} to %{target.label}: %{value:,.0f} requests<extra></extra>" },
    }] : [], { hovermode: "closest", margin: { l: 8, r: 8, t: 8, b: 8 } });
  };

  const choice = document.getElementById("variant");
  const routeChoice = document.getElementById("route");
  const pair = () => {
    const recorded = named.get(report.recorded);
    const other = named.get(choice ? choice.value : report.recorded);
    const both = choice ? [["a", recorded], ["b", other]] : [["a", recorded]];
    const peak = (of) => both.reduce((top, [, v]) => of(v).reduce((m, x) => Math.max(m, x), top), 0);
    const loadTop = 1.08 * Math.max(1, peak((v) => Object.values(v.series.load).flat()));
    const movedTop = 1.08 * Math.max(0.01, peak((v) => v.series.moved_percent));
    for (const [side, variant] of both) {
      document.querySelectorAll(`[data-name="${side}"]`).forEach((node) => { node.textContent = variant.name; });
      loads(`load-${side}`, variant, loadTop);
      movedBars(`moved-${side}`, variant, movedTop);
      flows(`flow-${side}`, variant);
      if (routeChoice) { weights(`weights-${side}`, variant, routeChoice.value); }
    }
  };
  const all = () => { overview(); pair(); };

  if (choice) { choice.addEventListener("change", pair); }
  if (routeChoice) { routeChoice.addEventListener("change", pair); }
  document.getElementById("theme").addEventListener("click", () => {
    const dark = css("color-scheme") === "dark" || getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    all();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  addEventListener("beforeprint", all);
  addEventListener("afterprint", all);
  all();
})();
