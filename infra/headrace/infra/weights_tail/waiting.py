"""Says what a tail waits for: once after a while without a snapshot, then every SAY_EVERY_MS."""

SAY_EVERY_MS = 30_000


class Waiting:
    """Folds the passing of time.

    Args:
        what: where snapshots come from: topic and address.
        patience_ms: how long silence is nothing to speak of.
        now_ms: when the waiting began.
    """

    def __init__(self, what: str, patience_ms: int, now_ms: int) -> None:
        self._what = what
        self._patience_ms = patience_ms
        self._next_ms = now_ms + patience_ms
        self._reason: str | None = None

    def complain(self, reason: str) -> None:
        """Take what the client says; the last of it is told."""
        self._reason = reason

    def arrive(self, now_ms: int) -> None:
        """Take note that something came."""
        self._next_ms, self._reason = now_ms + self._patience_ms, None

    def wait_on(self, now_ms: int) -> None:
        """Take note that somebody else has just said what is waited for."""
        self._next_ms = now_ms + SAY_EVERY_MS

    def say(self, now_ms: int, *, found: bool) -> str | None:
        """Give the sentence where it is due.

        Args:
            now_ms: the time.
            found: whether the topic has been found and read to its end.
        """
        if now_ms < self._next_ms:
            return None
        self._next_ms = now_ms + SAY_EVERY_MS
        if self._reason is not None:
            return f"waiting for {self._what}: {self._reason}"
        if not found:
            return f"waiting for {self._what}, which is not there: `headrace topics apply` creates it"
        return f"waiting for the next snapshot on {self._what}: does `headrace solver` run?"
