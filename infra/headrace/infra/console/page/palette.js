// Colours of lines: Okabe and Ito's, those that can be read on the ground of either theme; each with a dash of its own.
const LIGHT = ["#0072B2", "#D55E00", "#007A59", "#A8407F", "#8A6500", "#2B8CC4", "#3A4350", "#6B7280"];
const DARK = ["#56B4E9", "#F0823D", "#2CC79A", "#DDA0C3", "#F0C03C", "#9AD4F5", "#D5DCE6", "#98A3B1"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dot"];

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function line(i) {
  const colours = isDark() ? DARK : LIGHT;
  return { color: colours[i % colours.length], dash: DASHES[i % DASHES.length] };
}

export function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
