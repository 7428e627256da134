"""A tick as the decision log tells it: what it found and how, and what moved by it, each move with its likeliest cause.

SolveRecord ─► Decision (without duals, digests and settings: those are `headrace tail decisions --json`)
snapshots   ─► moves, as `headrace tail --diff` tells them
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.infra.weights_tail.diff import DiffLine, Moved
from headrace.schemas.decisions import SolveRecord

MAX_MOVES = 5
"""Moves told of one tick, the largest first; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a tick found, and what it cost. `took_ms` is without the publishing."""

    version: int
    tick_ms: int
    status: str
    rung: str
    sentence: str
    policy: str
    demand_rps: float
    capacity_rps: float
    shed_rps: float
    moved_rps: float
    utilisation: float | None
    gap: float | None
    took_ms: float


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the decision log; `decision` is null where the tick's record is not held."""

    version: int
    tick_ms: int
    status: str
    sentence: str
    decision: Decision | None
    moves: tuple[Moved, ...]
    more_moves: int


@dataclass(frozen=True, slots=True)
class DecisionLog:
    """Lines, newest first; `quiet` are ticks that were left out since they moved nothing."""

    lines: tuple[LogLine, ...]
    quiet: int
    older: int


def decision_of(record: SolveRecord) -> Decision:
    """Give a decision record without what nobody reads on a page."""
    return Decision(
        version=record.version,
        tick_ms=record.tick_ms,
        status=record.status.value,
        rung=record.rung,
        sentence=record.sentence,
        policy=record.policy,
        demand_rps=record.demand_rps,
        capacity_rps=record.capacity_rps,
        shed_rps=record.shed_rps,
        moved_rps=record.moved_rps,
        utilisation=record.utilisation,
        gap=record.gap,
        took_ms=(record.build_us + record.solve_us + record.check_us) / 1000,
    )


def decision_log(
    told: Sequence[DiffLine], decisions: Mapping[int, Decision], version: int, limit: int, *, quiet: bool
) -> DecisionLog:
    """Give the last lines up to a version.

    Args:
        told: what each version moved, oldest first.
        decisions: by version.
        version: the last that is told.
        limit: lines at most; what is beyond is counted as `older`.
        quiet: also those that moved nothing and say nothing new.
    """
    lines: list[LogLine] = []
    left_out, older = 0, 0
    until = [line for line in told if line.version <= version]
    for i in range(len(until) - 1, -1, -1):
        line, before = until[i], until[i - 1] if i else None
        if len(lines) >= limit:
            older += 1
        elif quiet or not _is_quiet(line, before):
            moves = line.moves[:MAX_MOVES]
            more = len(line.moves) - len(moves)
            found = decisions.get(line.version)
            lines.append(LogLine(line.version, line.tick_ms, line.status, line.sentence, found, moves, more))
        else:
            left_out += 1
    return DecisionLog(tuple(lines), left_out, older)


def _is_quiet(line: DiffLine, before: DiffLine | None) -> bool:
    if line.moves or line.added or line.removed:
        return False
    return before is None or line.status == before.status
