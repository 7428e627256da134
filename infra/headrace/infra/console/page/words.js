// How things are called and marked: every state has a word and a shape beside its colour.
export const STANDINGS = {
  OUT: { word: "out", mark: "✕", said: "may not be used" },
  FULL: { word: "full", mark: "▲", said: "95 % of its capacity or more" },
  LIMITED: { word: "limited", mark: "◆", said: "a protection took capacity away" },
  SERVING: { word: "serving", mark: "●", said: "requests go there" },
  IDLE: { word: "idle", mark: "○", said: "may serve, nothing goes there" },
};
export const ORDER = ["OUT", "FULL", "LIMITED", "SERVING", "IDLE"];

export const LIVENESS = {
  LIVE: { word: "Live", mark: "●", tone: "good" },
  HELD: { word: "Held", mark: "◆", tone: "warn" },
  STALE: { word: "Stale", mark: "▲", tone: "warn" },
  EXPIRED: { word: "Expired", mark: "✕", tone: "bad" },
  READING: { word: "Reading", mark: "○", tone: "info" },
  NO_SNAPSHOT: { word: "No snapshot", mark: "○", tone: "warn" },
  BROKER_LOST: { word: "Kafka lost", mark: "✕", tone: "bad" },
  CONSOLE_LOST: { word: "Console lost", mark: "✕", tone: "bad" },
};

export function inWords(code) {
  return code.toLowerCase().replaceAll("_", " ");
}
