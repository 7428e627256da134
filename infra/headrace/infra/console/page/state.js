// What the page looks at: which version (null follows the newest), which cluster and route, how engines are gathered.
const state = {
  status: null,
  lost: false,
  version: null,
  cluster: null,
  route: null,
  group: "site",
};
const listeners = new Set();

export const look = () => state;

export function set(changes) {
  const changed = Object.keys(changes).filter((name) => state[name] !== changes[name]);
  if (!changed.length) return;
  Object.assign(state, changes);
  for (const each of listeners) each(changed);
}

export function onChange(listener) {
  listeners.add(listener);
}

// The server's clock, by its last word: the browser's own may be off.
let ahead = 0;
export function heardAt(serverMs) {
  ahead = serverMs - Date.now();
}
export const nowMs = () => Date.now() + ahead;
