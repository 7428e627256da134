"""What lies on our topics can be read: no foreign schema, no framing without its registry, no wild numbers."""

from collections import defaultdict
from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.mending import PUBLISH_FLEET
from headrace.infra.doctor.core.picture import Picture, RefusedRecord
from headrace.infra.doctor.core.words import count
from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.overrides import is_override_key
from headrace.schemas.topics import FLEET, PROFILES, STATE_OF

FOLLOWS_FROM = ("registry",)

LATELY_MS = 60_000
"""Signals are told of for so long; what stands in a compacted topic is told for as long as it stands there."""
_UNREADABLE = (RejectReason.MALFORMED, RejectReason.UNKNOWN_SCHEMA, RejectReason.WRONG_RECORD)


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give, by topic and reason, the records that cannot be used; `profiles` and `clocks` judge theirs."""
    table = picture.setup.table
    signals = {table[role].name for role in STATE_OF}
    groups: dict[tuple[str, RejectReason], list[RefusedRecord]] = defaultdict(list)
    for refused in picture.refused:
        if refused.topic in signals and now_ms - refused.timestamp_ms > LATELY_MS:
            continue  # what is over is told by the dead letters
        if refused.topic != table[PROFILES].name and refused.reason is not RejectReason.TIME_IN_FUTURE:
            groups[refused.topic, refused.reason].append(refused)
    for (topic, reason), found in sorted(groups.items()):
        last = found[-1]
        say = warning if topic in signals else fault
        yield say(
            topic,
            f"{topic}: {count(len(found), 'record')} of the newest cannot be used, {reason}; the last at "
            f"{last.partition}/{last.offset}: {last.detail[:200]}",
            _meaning(picture, topic, reason),
            *_mend(picture, last, is_signal=topic in signals),
            value=len(found),
            bound=0,
        )


def _meaning(picture: Picture, topic: str, reason: RejectReason) -> str:
    if reason is RejectReason.UNKNOWN_SCHEMA and not picture.setup.registry_url:
        return "they are framed for a schema registry, or of a newer headrace, and registry.url is not set"
    if reason in _UNREADABLE:
        return "somebody else writes to this topic, or a producer of another version; whoever reads it passes them over"
    if topic == picture.setup.table[FLEET].name:
        return "an engine or an override counts as it was before, or not at all"
    return "their producer gives numbers that cannot be; they are passed over"


def _mend(picture: Picture, last: RefusedRecord, *, is_signal: bool) -> tuple[str, ...]:
    if last.reason is RejectReason.UNKNOWN_SCHEMA and not picture.setup.registry_url:
        return ("headrace doctor --only records --set registry.url=http://REGISTRY:8081",)
    if is_signal:
        return (f"headrace dead-letters --topic {last.topic} --reason {last.reason} --since 1h --json | head -1",)
    if last.topic == picture.setup.table[FLEET].name and not is_override_key(last.key):
        return PUBLISH_FLEET
    address, place = picture.setup.bootstrap_servers, f"--partition {last.partition} --offset {last.offset}"
    return (f"kafka-console-consumer --bootstrap-server {address} --topic {last.topic} {place} --max-messages 1",)
