"""This client may do with each topic and group what the workers under the same configuration have to do."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.picture import GroupSeen, Picture, Presence
from headrace.infra.doctor.core.words import quoted

NEEDED = ("READ", "WRITE", "DESCRIBE")
_ALL = ("ALL", "ANY")


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give each operation that the broker says this client may not do; where it does not say, nothing."""
    ours = {topic.name for topic in picture.setup.table.values()}
    for name, topic in sorted(picture.topics.items()):
        needed = NEEDED if name in ours else ("READ", "DESCRIBE")
        if topic.presence is Presence.DENIED:
            yield _denied(picture, "topic", name, needed, "it may not even be described")
        elif topic.operations is not None:
            lacking = _lacking(needed, topic.operations)
            if lacking:
                yield _denied(picture, "topic", name, lacking, "what it is for cannot be done")
            elif _lacking(("DESCRIBE_CONFIGS",), topic.operations):
                yield warning(
                    name,
                    f"{picture.setup.principal} may not DESCRIBE_CONFIGS of topic {name}",
                    "whether its settings are right cannot be told, nor put right by `headrace topics apply`",
                    _grant(picture, "topic", name, ("DESCRIBE_CONFIGS", "ALTER_CONFIGS")),
                )
    for group in picture.groups.values():
        yield from _group(picture, group)


def _group(picture: Picture, group: GroupSeen) -> Iterator[Finding]:
    denied = group.problem is not None and "uthoriz" in group.problem
    if denied or (group.operations is not None and _lacking(("READ",), group.operations)):
        yield _denied(picture, "group", group.group_id, ("READ", "DESCRIBE"), "its members cannot share partitions")


def _lacking(needed: tuple[str, ...], has: frozenset[str]) -> tuple[str, ...]:
    return () if has & set(_ALL) else tuple(operation for operation in needed if operation not in has)


def _denied(picture: Picture, kind: str, name: str, lacking: tuple[str, ...], means: str) -> Finding:
    return fault(
        name,
        f"{picture.setup.principal} may not {', '.join(lacking)} {kind} {name}",
        f"{means} by a process that runs with this configuration",
        _grant(picture, kind, name, lacking),
        value="denied",
        bound=", ".join(lacking),
    )


def _grant(picture: Picture, kind: str, name: str, operations: tuple[str, ...]) -> str:
    """Give the command by which whoever administers the cluster allows it."""
    flags = " ".join(f"--operation {''.join(part.title() for part in each.split('_'))}" for each in operations)
    return (
        f"kafka-acls --bootstrap-server {quoted(picture.setup.bootstrap_servers)} --add "
        f"--allow-principal {quoted(picture.setup.principal)} {flags} --{kind} {quoted(name)}"
    )
