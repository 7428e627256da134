"""A tick in one line, for the log: `version 812: 3 routes, 250 RPS planned on 280, moved 4.1 RPS, optimal in 3 ms`."""

from headrace.schemas.decisions import SolveRecord


def tick_line(record: SolveRecord, routes: int, took_us: int) -> str:
    """Say what a tick came to.

    Args:
        record: the tick's decision record.
        routes: routes of its snapshot.
        took_us: how long the decision took.
    """
    planned = record.demand_rps - record.shed_rps
    shed = f", {record.shed_rps:.1f} RPS shed" if record.shed_rps > 0 else ""
    return (
        f"version {record.version}: {routes} route{'' if routes == 1 else 's'}, "
        f"{planned:.0f} RPS planned on {record.capacity_rps:.0f}{shed}, moved {record.moved_rps:.1f} RPS, "
        f"{record.status.lower()} in {took_us / 1000:.0f} ms"
    )
