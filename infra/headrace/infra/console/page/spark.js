// A line without axes: how a number went over the versions held.
import { svg } from "./dom.js";

const WIDTH = 100;
const HEIGHT = 20;

export function spark(values) {
  const known = values.filter((value) => value !== null);
  const box = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  if (known.length < 2) return box;
  const top = Math.max(...known);
  const low = Math.min(0, ...known);
  const span = top - low || 1;
  const points = [];
  values.forEach((value, i) => {
    if (value === null) return;
    const x = (i / (values.length - 1)) * WIDTH;
    points.push(`${x.toFixed(2)} ${(HEIGHT - 1 - ((value - low) / span) * (HEIGHT - 2)).toFixed(2)}`);
  });
  const path = `M${points.join("L")}`;
  box.append(
    svg("path", { class: "spark-area", d: `${path}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z` }),
    svg("path", { class: "spark", d: path }),
  );
  return box;
}
