"""Scores of variants beside the recorded one: each number with its interval, its difference, and whether to believe it.

word of a difference:  BETTER | WORSE   its 95 % interval leaves out 0
UNCLEAR          it does not, or there is none (too short a run, or a number without)
SAME             the two are equal
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from headrace.replay.score.calibration import Calibration, calibrate
from headrace.replay.score.interval import (
    Blocks,
    Draws,
    Interval,
    block_ms,
    blocks_of,
    draws_of,
    interval,
    paired,
    paired_draws,
)
from headrace.replay.score.measured import NOTHING_MEASURED, MeasuredFleet
from headrace.replay.score.numbers import MET, NUMBERS, Number
from headrace.replay.score.off_policy import OffPolicyEstimate, OffPolicyRefused
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.sums import Of, end_to_end_s
from headrace.replay.score.variant_score import VariantScore, WorldScore
from headrace.schemas.errors import InvalidInputError


class Word(StrEnum):
    """How a variant's number stands against the recorded one's."""

    BETTER = "BETTER"
    WORSE = "WORSE"
    UNCLEAR = "UNCLEAR"
    SAME = "SAME"


@dataclass(frozen=True, slots=True)
class Told:
    """One number of one variant; None where there is nothing to tell."""

    number: Number
    value: float | None
    interval: Interval | None
    difference: float | None
    difference_interval: Interval | None
    word: Word


@dataclass(frozen=True, slots=True)
class Bounded:
    """Mean end-to-end latency, ms, if the profile were flat beyond what was measured, and if it rose twice as fast."""

    flat_ms: float
    steep_ms: float


@dataclass(frozen=True, slots=True)
class Compared:
    """One variant."""

    score: VariantScore
    numbers: tuple[Told, ...]
    extrapolation: Bounded | None
    slower_ms: float | None
    faster_ms: float | None
    off_policy: OffPolicyEstimate | OffPolicyRefused | None = None

    def told(self, name: str) -> Told:
        """Give a number by its name."""
        return next(told for told in self.numbers if told.number.name == name)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All variants, the recorded one first.

    Attributes:
        recorded: name of the variant that the others are held against.
        variants: the recorded one first, then in the order given.
        calibration: of the recorded one.
        blocks: how many blocks the intervals are drawn from, and how long one is.
        order_holds: whether the variants stand in the same order of mean latency with slower and faster profiles.
        spread: where the lengths of answers are from.
        settings: what was assumed.
        configurations: effective settings that differ from the defaults, by variant.
    """

    recorded: str
    variants: tuple[Compared, ...]
    calibration: Calibration
    blocks: tuple[int, float]
    order_holds: bool
    spread: str
    settings: ScoreSettings
    configurations: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])

    @property
    def met(self) -> bool:
        """Whether every variant was met by simulated users."""
        return all(each.score.met is not None for each in self.variants)


def compare(
    recorded: str,
    scores: Sequence[VariantScore],
    settings: ScoreSettings | None = None,
    measured: MeasuredFleet = NOTHING_MEASURED,
    configurations: Mapping[str, Mapping[str, object]] | None = None,
) -> Comparison:
    """Compare scores with the recorded one's.

    Args:
        recorded: name of the score that the others are held against.
        scores: at least that one; names must differ.
        settings: those that the scores were made with.
        measured: what history shows of the fleet, for calibration.
        configurations: of each variant, for the report.

    Raises:
        InvalidInputError: there is no score of that name, or two of one name.
    """
    rules = settings or ScoreSettings()
    names = [score.name for score in scores]
    if recorded not in names or len(set(names)) < len(names):
        raise InvalidInputError("comparison", (f"variants are {names}; each once, {recorded!r} among them",))
    ordered = sorted(scores, key=lambda score: score.name != recorded)
    start_ms = min((score.from_ms for score in ordered if score.ticks), default=0)
    span_ms = max(score.to_ms for score in ordered) - start_ms
    length_ms = block_ms(max(score.bin_ms for score in ordered), span_ms, rules)
    blocks = [blocks_of(score.bins, length_ms, start_ms) for score in ordered]
    told = _all_told(NUMBERS, ordered, blocks, rules)
    met = [score.met for score in ordered if score.met is not None]
    if len(met) == len(ordered):
        first_ms = min((each.bins[0][0] for each in met if each.bins), default=0)
        met_ms = block_ms(max(each.bin_ms for each in met), span_ms, rules)
        of_users = _all_told(MET, ordered, [blocks_of(each.bins, met_ms, first_ms) for each in met], rules)
        told = [(*users, *scored) for users, scored in zip(of_users, told, strict=True)]
    compared = tuple(
        Compared(score, numbers, _bounded(score), _world_ms(score.slower), _world_ms(score.faster))
        for score, numbers in zip(ordered, told, strict=True)
    )
    return Comparison(
        recorded=recorded,
        variants=compared,
        calibration=calibrate(ordered[0], measured),
        blocks=(len(blocks[0].starts_ms), length_ms / 1000.0),
        order_holds=_order_holds(compared),
        spread=measured.spread.source,
        settings=rules,
        configurations=configurations or {},
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """The draws of one variant, and those of it and the recorded one together."""

    own: Draws | None
    pair: tuple[Draws, Draws] | None


def _all_told(
    numbers: Sequence[Number], scores: Sequence[VariantScore], blocks: Sequence[Blocks], rules: ScoreSettings
) -> list[tuple[Told, ...]]:
    """Give these numbers of each score, drawn from its blocks; the first is what the others are held against."""
    out: list[tuple[Told, ...]] = []
    for score, own in zip(scores, blocks, strict=True):
        pair = None if own is blocks[0] else paired_draws(own, blocks[0], rules)
        drawn = _Drawn(draws_of(own, rules), pair)
        out.append(tuple(_told(number, score, scores[0], drawn) for number in numbers))
    return out


def _told(number: Number, score: VariantScore, recorded: VariantScore, drawn: _Drawn) -> Told:
    value, other = number.read(score), number.read(recorded)
    # Sessions are counted over the whole run: there are no blocks of them to draw.
    statistic = None if number.name == "cold_percent" and score.sessions is not None else number.statistic
    own = None if value is None or statistic is None else interval(drawn.own, statistic)
    if score is recorded or value is None or other is None:
        return Told(number, value, own, None, None, Word.SAME if score is recorded else Word.UNCLEAR)
    difference = value - other
    between = None if statistic is None else paired(drawn.pair, statistic)
    return Told(number, value, own, difference, between, _word(difference, between, number.better))


def _word(difference: float, between: Interval | None, better: int) -> Word:
    if difference == 0.0:
        return Word.SAME
    if between is None or not between.leaves_out_zero or better == 0:
        return Word.UNCLEAR
    return Word.BETTER if (between.high < 0.0) == (better < 0) else Word.WORSE


def _bounded(score: VariantScore) -> Bounded | None:
    mean, served = end_to_end_s(score.sums), score.sums[Of.SERVED]
    if mean is None or score.sums[Of.UNMEASURED] <= 0.0:
        return None
    beyond = float(score.sums[Of.BEYOND] / served)
    return Bounded(1000.0 * (mean - beyond), 1000.0 * (mean + beyond))


def _world_ms(world: WorldScore) -> float | None:
    mean = end_to_end_s(world.sums)
    return None if mean is None else 1000.0 * mean


def _order_holds(compared: Sequence[Compared]) -> bool:
    def order(read: Sequence[float | None]) -> list[int]:
        return sorted(range(len(read)), key=lambda i: (float("inf") if (v := read[i]) is None else v, i))

    nominal = order([c.told("mean_ms").value for c in compared])
    return nominal == order([c.slower_ms for c in compared]) == order([c.faster_ms for c in compared])
