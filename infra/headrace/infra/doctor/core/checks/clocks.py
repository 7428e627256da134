"""Clocks agree: of those who publish signals, of the brokers, of the solver, and of this machine."""

from collections import defaultdict
from collections.abc import Iterator

from headrace.infra.doctor.core.checks.sources import kind_of
from headrace.infra.doctor.core.checks.watermark import event_ms
from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.mending import SET_CLOCK
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import duration, some
from headrace.schemas.signals import NetworkProbe

FOLLOWS_FROM = ("brokers",)

AHEAD_MS = 2_000
LATE_MS = 10_000
"""How much later than its period's end, and another period, a signal may reach Kafka."""


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give each source whose events are dated ahead of, or long before, their records; and clocks ahead of this one."""
    ahead: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    late: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for heard in picture.signals or ():
        of, key = (kind_of(heard), heard.signal.source), heard.signal.key.decode("utf-8", "replace")
        by_ms = event_ms(heard.signal) - min(heard.record_ms, now_ms)
        if by_ms > AHEAD_MS:
            ahead[of][key] = max(by_ms, ahead[of].get(key, 0))
        signal = heard.signal
        period_ms = 0 if isinstance(signal, NetworkProbe) else signal.period_end_ms - signal.period_start_ms
        late[of][key].append(heard.record_ms - event_ms(signal) - period_ms)
    yield from _ahead(ahead)
    for (kind, source), keys in sorted(late.items()):
        medians = {key: sorted(each)[len(each) // 2] for key, each in keys.items()}
        slow = {key: ms for key, ms in medians.items() if ms > LATE_MS}
        if slow and (kind, source) not in ahead:
            worst = max(slow.values())
            yield warning(
                source,
                f"source {source} dates its {kind} signals {duration(worst)} before they reach Kafka; at most "
                f"{duration(LATE_MS)} and a period: {some(slow)}",
                "its clock is behind, or what it publishes lies somewhere before it is sent; engines look silent",
                SET_CLOCK,
                value=round(worst),
                bound=LATE_MS,
            )
    yield from _others(picture, now_ms)


def _ahead(ahead: dict[tuple[str, str], dict[str, int]]) -> Iterator[Finding]:
    for (kind, source), keys in sorted(ahead.items()):
        worst = max(keys.values())
        yield fault(
            source,
            f"source {source} dates its {kind} signals {duration(worst)} into the future; at most "
            f"{duration(AHEAD_MS)}: {some(keys)}",
            "its clock is ahead: it looks fresher than it is, and others staler; far ahead it is refused "
            "(TIME_IN_FUTURE). On its host:",
            SET_CLOCK,
            value=worst,
            bound=AHEAD_MS,
        )


def _others(picture: Picture, now_ms: int) -> Iterator[Finding]:
    commit = picture.commit
    if commit is not None and commit.tick_ms - now_ms > AHEAD_MS:
        yield fault(
            "solver",
            f"snapshot {commit.version} is dated {duration(commit.tick_ms - now_ms)} into the future; at most "
            f"{duration(AHEAD_MS)}",
            "the solver's clock is ahead, or this machine's behind: staleness and validity are misjudged. On its host:",
            SET_CLOCK,
            value=commit.tick_ms - now_ms,
            bound=AHEAD_MS,
        )
    stamped = {
        name: ms
        for name, ms in picture.newest_ms.items()
        if (topic := picture.topics.get(name)) is not None
        and (topic.config or {}).get("message.timestamp.type") == "LogAppendTime"
    }
    newest = max(stamped.values(), default=0)
    if newest - now_ms > AHEAD_MS:
        yield warning(
            "brokers",
            f"brokers stamp records {duration(newest - now_ms)} into this machine's future; at most "
            f"{duration(AHEAD_MS)}",
            "this machine's clock is behind, or a broker's is ahead: what is judged here by age is misjudged",
            SET_CLOCK,
            value=newest - now_ms,
            bound=AHEAD_MS,
        )
