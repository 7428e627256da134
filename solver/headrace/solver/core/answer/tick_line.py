"""A tick in one line, for the log, and whether it is worth one.

version 812: 3 routes, 250 RPS planned of 280 RPS capacity, moved 4.1 RPS, optimal in 3 ms
"""

from headrace.schemas.decisions import SolveRecord

MOVED_LITTLE = 0.005
"""Share of the demand below which a move is not worth a line."""


def everything_is_refused(record: SolveRecord) -> bool:
    """Say whether something was asked for and none of it is served."""
    return 0.0 < record.demand_rps <= record.shed_rps * (1.0 + 1e-9)


def moved_little(record: SolveRecord) -> bool:
    """Say whether less than MOVED_LITTLE of the traffic goes elsewhere than before."""
    return record.moved_rps < MOVED_LITTLE * record.demand_rps


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
        f"{planned:.0f} RPS planned of {record.capacity_rps:.0f} RPS capacity{shed}, moved {record.moved_rps:.1f} RPS, "
        f"{record.status.lower()} in {took_us / 1000:.0f} ms"
    )
