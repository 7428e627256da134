"""A decision record in one line, for people: what a tick was given, what it found, how, and what it cost."""

from datetime import UTC, datetime

from headrace.schemas.decisions import SolveRecord


def decision_line(record: SolveRecord) -> str:
    """Say one tick."""
    at = datetime.fromtimestamp(record.tick_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    gap = "" if record.gap is None else f", within {100 * record.gap:.3f} %"
    took_ms = (record.build_us + record.solve_us + record.check_us) / 1000
    size = f"{_count(record.columns, 'column')} in {_count(record.components, 'part')}, {took_ms:.1f} ms"
    flow = f"{record.demand_rps:.1f} RPS of {record.capacity_rps:.1f}, {record.shed_rps:.1f} shed"
    return (
        f"{at} version {record.version}, {record.status} by {record.rung}{gap}: {flow}, "
        f"{record.moved_rps:.1f} moved; {size}; {record.sentence}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
