"""Signals, states, decisions and snapshots are kept as long as a replay or an `explain --at` may ask for them."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, warning
from headrace.infra.doctor.core.picture import Picture, TopicSeen
from headrace.infra.doctor.core.words import duration, quoted
from headrace.schemas.topics import Topic

FOLLOWS_FROM = ("brokers",)


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give what is kept for less time than `topics.history_ms`, or only up to a size."""
    for role, topic in picture.setup.table.items():
        seen = picture.topic(role)
        if seen is not None and seen.config is not None:
            yield from _too_short(topic, seen)
            yield from _by_size(picture, topic, seen)
    keyframe_ms, history_ms = picture.setup.solver.keyframe_ms, picture.setup.topics.history_ms
    if 2 * keyframe_ms > history_ms:
        yield warning(
            "solver.keyframe_ms",
            f"solver.keyframe_ms is {keyframe_ms}; at most half of topics.history_ms, {history_ms}",
            "a replay begins at a keyframe: history may hold none",
            f"headrace solver --set solver.keyframe_ms={history_ms // 2}",
            value=keyframe_ms,
            bound=history_ms // 2,
        )


def _too_short(topic: Topic, seen: TopicSeen) -> Iterator[Finding]:
    for name in ("retention.ms", "min.compaction.lag.ms"):
        should = topic.config.get(name)
        has = (seen.config or {}).get(name)
        if should is None or (has is not None and not _is_shorter(name, has, should)):
            continue
        kept = "not set" if has is None else f"{has} ({duration(int(has))})"
        yield warning(
            topic.name,
            f"{topic.name}: {name} is {kept}; it should be {should} ({duration(int(should))}, topics.history_ms)",
            "older ticks cannot be verified, replayed or explained: what they had read is gone",
            "headrace topics apply",
            value=has,
            bound=should,
        )


def _is_shorter(name: str, has: str, should: str) -> bool:
    if not has.lstrip("-").isdigit():
        return True
    return not (name == "retention.ms" and int(has) < 0) and int(has) < int(should)


def _by_size(picture: Picture, topic: Topic, seen: TopicSeen) -> Iterator[Finding]:
    size = (seen.config or {}).get("retention.bytes", "-1")
    if topic.compacted or not size.isdigit():
        return
    yield warning(
        topic.name,
        f"{topic.name}: retention.bytes is {size}; it should be -1, as long as topics.history_ms asks",
        "when traffic grows its history shrinks, below what a replay asks for",
        f"kafka-configs --bootstrap-server {quoted(picture.setup.bootstrap_servers)} --alter "
        f"--entity-type topics --entity-name {topic.name} --delete-config retention.bytes",
        value=size,
        bound="-1",
    )
