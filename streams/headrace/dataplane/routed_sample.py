"""A sample of the requests that were routed here, whole sessions at a time; off unless a share is set.

    sampled      xxh3_64(point, seed) < share x 2^64          point: where the session stands, see `session_point`

By a hash of the point, not by the point: that decides on slots and on shedding, and a sample by it would be one of some
engines. Data planes agree on who is sampled. Requests without a session are sampled one by one.

`note()` only appends to a bounded deque, so any number of request threads may call it; `close()` gives one record per
route. What does not fit, or is no identifier, is dropped and counted.
"""

import math
from collections import deque
from typing import Any, Final

import xxhash

from headrace.dataplane.decision import Decision
from headrace.dataplane.guards.contract import AttemptOutcome
from headrace.dataplane.session_point import SessionPoints
from headrace.schemas.ids import is_identifier
from headrace.schemas.routed import MAX_REQUESTS, MAX_S, RoutedOutcome, RoutedRequest, RoutedRequests, signed

MAX_PENDING: Final = 100_000
"""Requests noted between two calls of `close()`."""
_SEED: Final = 0x726F_7574_6564
_hash = xxhash.xxh3_64_intdigest


class RoutedSample:
    """Of one data plane. One caller closes; any number note.

    Args:
        cluster: where its requests come in.
        source: the data plane's name.
        share: of the sessions, 0..1; 0 notes nothing.

    Attributes:
        dropped: requests of sampled sessions that are in no record.
    """

    def __init__(self, cluster: str, source: str, share: float) -> None:
        self.dropped = 0
        self._cluster = cluster
        self._source = source
        self._share = share
        self._below = round(share * (1 << 64))
        self._point = SessionPoints(f"{cluster}|{source}|routed").of
        self._pending: deque[tuple[Any, Any, RoutedRequest]] = deque()

    def note(  # noqa: PLR0913 - what is known of an attempt when it is over
        self,
        model: str,
        request_class: str,
        decision: Decision,
        outcome: AttemptOutcome,
        *,
        key: bytes | str | None,
        retry: bool,
        ttft_s: float | None,
        e2e_s: float | None,
        now_ms: int,
    ) -> None:
        """Note an attempt that is over, if its session is sampled; `key` is the one it was routed by."""
        if not self._below or decision.engine_id is None:
            return
        point = self._point(key)
        if _hash(point.to_bytes(8, "little"), _SEED) >= self._below:
            return
        if len(self._pending) >= MAX_PENDING:
            self.dropped += 1
            return
        e2e_s = _seconds(e2e_s)
        request = RoutedRequest(
            sent_ms=max(0, now_ms - round(1000 * (e2e_s or 0.0))),
            session=signed(point) if key else None,
            engine_id=decision.engine_id,
            reason=decision.reason.value,
            retry=bool(retry),
            epoch=decision.epoch,
            version=decision.version,
            propensity=decision.propensity,
            outcome=RoutedOutcome(outcome.value),
            ttft_s=_seconds(ttft_s),
            e2e_s=e2e_s,
        )
        self._pending.append((model, request_class, request))

    def close(self, now_ms: int) -> tuple[RoutedRequests, ...]:
        """Give what was noted since the last close, by route; routes of many requests in several records."""
        noted: dict[tuple[str, str], list[RoutedRequest]] = {}
        for _ in range(len(self._pending)):
            model, request_class, request = self._pending.popleft()
            names: tuple[Any, ...] = (model, request_class, request.engine_id)
            if all(isinstance(n, str) and is_identifier(n) for n in names):
                noted.setdefault((model, request_class), []).append(request)
            else:
                self.dropped += 1
        return tuple(
            RoutedRequests(
                self._cluster, *route, self._source, now_ms, self._share, tuple(requests[at : at + MAX_REQUESTS])
            )
            for route, requests in sorted(noted.items())
            for at in range(0, len(requests), MAX_REQUESTS)
        )


def _seconds(value: Any) -> float | None:  # noqa: ANN401 - whatever a caller measured
    """Give a duration; None for what is none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) and 0.0 <= value < MAX_S else None
