"""Engines that publish under a name that the fleet does not have, as the dead letters of late tell of them."""

from collections.abc import Iterable

from headrace.infra.topic_readers.to_end import read_to_end
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.schemas.errors import HeadraceError
from headrace.schemas.raw import RawRecord

LOOK_BACK_MS = 3_600_000
_SHOWN = 5


def refused_engines(kafka: KafkaSettings, topic: str, now_ms: int) -> tuple[str, ...]:
    """Give the engines that were refused in the last hour for want of a place in the fleet, sorted.

    None where the topic cannot be read: it is asked only to explain why something else is missing.
    """
    try:
        return unknown_engines_in(read_to_end(kafka, topic, now_ms - LOOK_BACK_MS))
    except HeadraceError:
        return ()


def unknown_engines_in(records: Iterable[RawRecord]) -> tuple[str, ...]:
    """Give the engines of which records of the dead letters' topic say that the fleet does not have them, sorted."""
    letters = (decode(DeadLetter, record.value, record.headers) for record in records)
    return tuple(
        sorted(
            {
                (letter.record_key or b"").decode("utf-8", "replace")
                for letter in letters
                if isinstance(letter, DeadLetter) and letter.reason is RejectReason.UNKNOWN_ENGINE
            }
        )
    )


def told_unknown(engines: tuple[str, ...]) -> str:
    """Say which engines were refused, and what to do."""
    more = f" and {len(engines) - _SHOWN} more" if len(engines) > _SHOWN else ""
    return (
        f"signals of {', '.join(engines[:_SHOWN])}{more} were refused in the last hour (UNKNOWN_ENGINE): the fleet has "
        "no engine of that name; engine_id must be the same in fleet and signals: `headrace fleet list`"
    )
