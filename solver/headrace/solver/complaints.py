"""What the Kafka client says of a broker that is away, told once and then at most every ten seconds."""

from collections.abc import Callable

TOLD_EVERY_MS = 10_000


class Complaints:
    """Lets a sentence through, then nothing for TOLD_EVERY_MS, counting what was held back."""

    def __init__(self, tell: Callable[[str, int], None], now_ms: Callable[[], int]) -> None:
        self._tell = tell
        self._now_ms = now_ms
        self._told_ms: int | None = None
        self._held_back = 0

    def add(self, sentence: str) -> None:
        """Take a complaint; told as (sentence, how many were held back since the last)."""
        now_ms = self._now_ms()
        if self._told_ms is not None and 0 <= now_ms - self._told_ms < TOLD_EVERY_MS:
            self._held_back += 1
            return
        self._tell(sentence, self._held_back)
        self._told_ms, self._held_back = now_ms, 0
