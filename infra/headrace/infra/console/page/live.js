// The stream of events: how the console stands, whenever that changes. The browser reconnects by itself; we say so.
export function follow(onStatus, onLost) {
  let source = null;
  let silent = 0;
  const open = () => {
    source = new EventSource("/api/events");
    source.addEventListener("status", (event) => {
      heard();
      onStatus(JSON.parse(event.data));
    });
    source.addEventListener("error", () => {
      onLost();
      // Closed for good (a proxy's error page, a full console): try again ourselves.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, 2000);
    });
    heard();
  };
  // A connection may die without a word; the server beats every two seconds.
  const heard = () => {
    clearTimeout(silent);
    silent = setTimeout(() => {
      onLost();
      source.close();
      open();
    }, 8000);
  };
  open();
}
