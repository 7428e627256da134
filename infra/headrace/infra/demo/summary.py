"""A demo as one JSON object: what became of every request, how long users waited, how quick and calm the loop was."""

from dataclasses import asdict
from typing import Any

from headrace.infra.demo.logbook import SETTLED_S, Logbook
from headrace.infra.demo.session import Session
from headrace.infra.fleet.outcomes import LatencySummary, summarise
from headrace.infra.fleet.request import Kind


def summary(session: Session) -> dict[str, Any]:
    """Give the summary of a session that has finished.

    `unanswered` counts requests without an outcome, `routed_to_known_dead` those given to an engine whose death the
    data plane knew of; both must be 0. `spilled` counts those that a gateway sent elsewhere in a surge, before the
    weights knew of it. Latencies are what users waited: network, queue, first token and all others.
    `signal_to_weight_ms` is from a signal's Kafka timestamp to the installation of weights that it had a part in.
    `traffic_moved` has the start by itself, in which windows fill for the first time; shares are what was counted, of
    all traffic at the moment of each move, over `span_s`: nothing is extrapolated to a minute. `after_start` is None
    where the run ended before. `broker_ended` and `worker_ended` say how the broker or a worker ended in mid-run;
    None where none did.
    """
    tally, book, times = session.simulation.tally, session.logbook, session.times
    duration_s = max(session.ran_s, 1e-9)
    by_engine: dict[str, int] = {}
    for part, count in sorted(tally.ended.items(), key=lambda item: (item[0].engine_id or "", item[0].kind)):
        if part.kind is Kind.ANSWERED and part.engine_id is not None:
            by_engine[part.engine_id] = by_engine.get(part.engine_id, 0) + count
    lag = summarise(book.lag.lag_ms)
    refused = tally.by(Kind.REFUSED)
    return {
        "scenario": session.options.scenario.name,
        "broker": session.options.broker,
        "seed": session.options.seed,
        "duration_s": round(duration_s, 3),
        "startup_s": {name: _rounded(value, 3) for name, value in asdict(times).items()},
        "requests": {
            "arrived": tally.arrived,
            "answered": sum(tally.by(Kind.ANSWERED).values()),
            "refused": refused,
            "failed": tally.by(Kind.FAILED),
            "unanswered": tally.open,
            "routed_to_known_dead": tally.routed_to_known_dead,
            "attempts": tally.attempts,
            "retries": tally.retries,
            "spilled": tally.spilled,
            "answered_by_engine": by_engine,
        },
        "latency_ms": {
            "all": _latency(tally.latency()),
            "phases": {name: _latency(tally.latency(name)) for name in tally.latency_ms},
        },
        "signal_to_weight_ms": {"count": lag.count, "p50": lag.p50_ms, "p95": lag.p95_ms, "p99": lag.p99_ms},
        "snapshots": {
            "installed": dict(sorted(book.installed.items())),
            "statuses": {status.value: count for status, count in sorted(book.statuses.items())},
        },
        "traffic_moved": _moved(book, duration_s),
        "shed": {"requests": refused.get("SHED", 0), "max_rps": round(book.shed_max_rps, 1)},
        "events": [{"t_s": round(at_s, 3), "what": what} for at_s, what in book.events],
        "fleet_behind_clock_max_ms": round(session.behind_max_ms, 1),
        "broker_ended": session.broker_ended,
        "worker_ended": session.worker_ended,
        "logs": {name: str(path) for name, path in session.workers.logs.items()},
    }


def summary_lines(found: dict[str, Any]) -> list[str]:
    """Give a summary in a few lines, for people."""
    requests, latency, lag = found["requests"], found["latency_ms"]["all"], found["signal_to_weight_ms"]
    unserved = ", ".join(f"{n} {reason}" for kind in ("refused", "failed") for reason, n in requests[kind].items())
    lines = [
        f"{found['duration_s']:.0f} s, first request routed after {found['startup_s']['first_routed_request_s']:.1f} s",
        f"requests: {requests['arrived']} arrived, {requests['answered']} answered"
        + (f"; not served: {unserved}" if unserved else "")
        + f"; {requests['unanswered']} without an outcome, {requests['routed_to_known_dead']} to an engine known dead",
        f"latency: mean {latency['mean']} ms, p50 {latency['p50']}, p95 {latency['p95']}, p99 {latency['p99']}",
    ]
    lines += [
        f"  {name}: mean {phase['mean']} ms, p99 {phase['p99']} ({phase['count']} answers)"
        for name, phase in found["latency_ms"]["phases"].items()
    ]
    return [
        *lines,
        f"signal to installed weight: p50 {lag['p50']} ms, p99 {lag['p99']} ms ({lag['count']} measured)",
        f"traffic moved: {moved_words(found['traffic_moved'])}",
        f"surges: {requests['spilled']} requests sent where there was room before the weights knew (SPILLED)",
        f"shed: {found['shed']['requests']} requests, at most {found['shed']['max_rps']} RPS",
    ]


def moved_words(moved: dict[str, Any]) -> str:
    """Say how much traffic moved, and over what span."""
    start, after = moved["start"], moved["after_start"]
    began = f"the first {start['to_s']:.0f} s, as windows filled: {start['share']:.1%}"
    if after is None:
        return f"{began}; the run ended before it had settled"
    return f"{after['share']:.1%} of it in the {after['span_s']:.0f} s after it had settled ({began})"


def _moved(book: Logbook, duration_s: float) -> dict[str, Any]:
    return {
        "start": _span(book, 0.0, min(SETTLED_S, duration_s)),
        "after_start": _span(book, SETTLED_S, duration_s) if duration_s > SETTLED_S else None,
    }


def _span(book: Logbook, from_s: float, to_s: float) -> dict[str, float]:
    return {
        "from_s": round(from_s, 3),
        "to_s": round(to_s, 3),
        "span_s": round(to_s - from_s, 3),
        "share": round(book.moved_share(from_s, to_s), 4),
    }


def _latency(found: LatencySummary) -> dict[str, float | int | None]:
    return {
        "count": found.count,
        "mean": _rounded(found.mean_ms, 1),
        "p50": found.p50_ms,
        "p95": found.p95_ms,
        "p99": found.p99_ms,
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
