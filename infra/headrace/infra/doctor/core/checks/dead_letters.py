"""Next to nothing is refused: dead letters are few, and their dominant reason says what to mend."""

from collections import Counter
from collections.abc import Iterable, Iterator

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.mending import PUBLISH_FLEET, SET_CLOCK
from headrace.infra.doctor.core.picture import Letter, Picture
from headrace.infra.doctor.core.words import duration, some
from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.topics import DEAD_LETTERS, STATE_OF

FOLLOWS_FROM = ("brokers", "clocks", "records", "fleet")

WINDOW_MS = 600_000
FEW = 5
"""So many in ten minutes are somebody's slip."""
MANY = 1_000
MANY_SHARE = 0.1
"""How many, and which share of the signals, from which on it is a fault, and others may follow from it."""
_FLOOD = "; workers that read so many fall behind, and engines that still report count as silent then"
_MEANS = {
    RejectReason.UNKNOWN_ENGINE: "engines publish that the fleet does not have: their signals count for nothing",
    RejectReason.TIME_IN_FUTURE: "a producer's clock is ahead of the brokers'",
    RejectReason.KEY_MISMATCH: "a producer's key is not what its record is of",
    RejectReason.WRONG_PARTITION: "a producer partitions otherwise than Kafka's murmur2: partitioner=murmur2_random",
    RejectReason.UNKNOWN_SCHEMA: "a producer frames for a schema registry that is not configured, or is newer",
    RejectReason.MALFORMED: "a producer writes what is no Avro record of ours",
}


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give how many were refused, counted by offsets, and what most of the newest are for."""
    letters = _of_late(picture, now_ms)
    total = max(len(letters), _grown(picture, (DEAD_LETTERS,)))
    reason = dominant(picture, now_ms)
    if reason is None:
        return
    count = sum(each.letter.reason is reason for each in letters)
    last = next(each for each in reversed(letters) if each.letter.reason is reason)
    topics = some({each.letter.topic for each in letters if each.letter.reason is reason})
    signals = _grown(picture, STATE_OF)
    share = total / signals if signals > 0 else None
    say = fault if total >= MANY or (share is not None and share > MANY_SHARE) else warning
    part = "" if share is None else f", {100 * min(1.0, share):.0f} % of the signals"
    of_them = f"{count} of them" if total == len(letters) else f"{count} of the newest {len(letters)}"
    since_ms = min(each.refused_ms for each in letters) if total == len(letters) else now_ms - WINDOW_MS
    newest = duration(now_ms - max(each.refused_ms for each in letters))
    yield say(
        reason.value,
        f"{total} records were refused in the last {duration(now_ms - since_ms)}{part}; at most {FEW}; {of_them} "
        f"{reason} from {topics}; the last {newest} ago: {last.letter.detail[:200]}",
        _means(picture, reason, now_ms) + (_FLOOD if say is fault else ""),
        *_mend(picture, reason, last),
        value=total,
        bound=FEW,
    )


def dominant(picture: Picture, now_ms: int) -> RejectReason | None:
    """Give what most of the newest are for; None where they are so few that they are not told here."""
    letters = _of_late(picture, now_ms)
    if len(letters) <= FEW:
        return None
    return Counter(each.letter.reason for each in letters).most_common(1)[0][0]


def strangers(picture: Picture, now_ms: int) -> set[str]:
    """Give the engines whose signals were refused of late since the fleet does not have them."""
    return {
        (each.letter.record_key or b"").decode("utf-8", "replace")
        for each in _of_late(picture, now_ms)
        if each.letter.reason is RejectReason.UNKNOWN_ENGINE
    }


def _means(picture: Picture, reason: RejectReason, now_ms: int) -> str:
    means = _MEANS.get(reason, "a producer gives numbers that cannot be")
    if reason is not RejectReason.UNKNOWN_ENGINE or picture.view is None:
        return means
    known = some(key.decode("utf-8", "replace") for key in picture.view.specs) or "no engine"
    return f"{means}: {some(strangers(picture, now_ms))}, and the fleet has {known}: name them the same"


def _of_late(picture: Picture, now_ms: int) -> list[Letter]:
    return [each for each in picture.letters or () if now_ms - each.refused_ms <= WINDOW_MS]


def _grown(picture: Picture, roles: Iterable[str]) -> int:
    """Count what came to topics in the last ten minutes."""
    topics = [picture.topic(role) for role in roles]
    return sum(each.grown_lately for topic in topics if topic is not None for each in topic.partitions)


def _mend(picture: Picture, reason: RejectReason, last: Letter) -> tuple[str, ...]:
    look = f"headrace dead-letters --since 10m --reason {reason} --topic {last.letter.topic}"
    match reason:
        case RejectReason.UNKNOWN_ENGINE:
            return PUBLISH_FLEET
        case RejectReason.TIME_IN_FUTURE:
            return (SET_CLOCK, look)
        case RejectReason.UNKNOWN_SCHEMA if not picture.setup.registry_url:
            return ("headrace streams --set registry.url=http://REGISTRY:8081", look)
        case _:
            return (look,)
