// Numbers and times as people read them: three figures that matter, a unit, and a dash for what is not known. Times are
// UTC, as every other tool of headrace says them: at night nobody should have to add hours up.
export const DASH = "–";
const thousands = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function rps(value) {
  if (value === null || value === undefined) return DASH;
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.05) return "<0.1";
  return size < 1000 ? value.toFixed(1) : thousands.format(value);
}

export function whole(value) {
  return value === null || value === undefined ? DASH : thousands.format(value);
}

export function counted(value, one, many = `${one}s`) {
  return `${whole(value)} ${value === 1 ? one : many}`;
}

export function percent(share, digits = 1) {
  if (share === null || share === undefined) return DASH;
  if (share > 0 && share < 0.0005) return "<0.1 %";
  return `${(100 * share).toFixed(share >= 0.9995 ? 0 : digits)} %`;
}

export function ms(value) {
  if (value === null || value === undefined) return DASH;
  return Math.abs(value) >= 10000 ? `${(value / 1000).toFixed(1)} s` : `${value.toFixed(1)} ms`;
}

const pad = (value, width = 2) => String(value).padStart(width, "0");

export function clock(atMs, withMs = false) {
  if (atMs === null || atMs === undefined) return DASH;
  const at = new Date(atMs);
  const text = `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}:${pad(at.getUTCSeconds())}`;
  return withMs ? `${text}.${pad(at.getUTCMilliseconds(), 3)}` : text;
}

export function day(atMs) {
  const at = new Date(atMs);
  return `${at.getUTCFullYear()}-${pad(at.getUTCMonth() + 1)}-${pad(at.getUTCDate())} ${clock(atMs)} UTC`;
}

export function duration(forMs) {
  const s = Math.max(0, forMs) / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  if (s < 172800) return `${(s / 3600).toFixed(1)} h`;
  return `${Math.round(s / 86400)} days`;
}

export function routeName(key) {
  return key.split("|").join(" · ");
}

const NAMES = { "!shed": "shed", "!others": "others", "!unknown": "not in the fleet" };

export function nameOf(name) {
  return NAMES[name] ?? name.split("|").join(" · ");
}
