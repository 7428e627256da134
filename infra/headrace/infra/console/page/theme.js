// The switch between the system's theme, light and dark; remembered in this browser.
import { byId, replace } from "./dom.js";

const NEXT = { system: "light", light: "dark", dark: "system" };
const NAMES = { system: "Auto", light: "Light", dark: "Dark" };
const listeners = new Set();

export const onTheme = (listener) => listeners.add(listener);

function chosen() {
  return document.documentElement.dataset.theme ?? "system";
}

function choose(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("headrace-theme", theme);
  } catch (error) {
    // Without storage it holds until the page is closed.
  }
  show();
  for (const each of listeners) each();
}

function show() {
  const button = byId("theme");
  replace(button, NAMES[chosen()]);
  button.setAttribute("aria-label", `Theme: ${NAMES[chosen()]}. Change it`);
  button.title = "Theme";
}

export function nextTheme() {
  choose(NEXT[chosen()]);
}

export function startTheme() {
  byId("theme").addEventListener("click", nextTheme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const each of listeners) each();
  });
  show();
}
