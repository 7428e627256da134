"""Every broker answers and takes connections, and every partition has a leader and all its replicas."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.picture import BrokerSeen, Picture, TopicSeen
from headrace.infra.doctor.core.words import count, some

_LOCAL = ("127.0.0.1:", "localhost:", "[::1]:")


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give what of the brokers cannot be reached."""
    address = picture.setup.bootstrap_servers
    if picture.unreachable is not None:
        yield fault(
            address,
            picture.unreachable,
            "nothing can be read or written: data planes route on by the weights that they hold, for as long as those "
            "are valid and then by their fallback; nothing else can be looked at until a broker answers",
            *_how_to_reach(address, picture.unreachable),
        )
    for broker in picture.brokers:
        if broker.problem is not None and picture.unreachable is None:
            yield _closed(broker, picture)
    for topic in picture.topics.values():
        yield from _partitions(topic, address)


def _how_to_reach(address: str, said: str) -> tuple[str, ...]:
    if "uthenticat" in said or "SASL" in said:
        return ("headrace doctor --check-config", "headrace doctor --print-config | grep kafka.options -A 8")
    start = ("headrace broker up",) if address.startswith(_LOCAL) else ()
    return (*start, "headrace doctor --bootstrap HOST:PORT")


def _closed(broker: BrokerSeen, picture: Picture) -> Finding:
    if broker.node is None:
        return warning(
            broker.address,
            f"{broker.address} of kafka.bootstrap_servers takes no connection: {broker.problem}",
            "the others still serve; a process that starts while they are away finds no broker",
            "headrace doctor --print-config | grep bootstrap_servers",
        )
    leads = sum(each.leader == broker.node for topic in picture.topics.values() for each in topic.partitions)
    return fault(
        broker.address,
        f"broker {broker.node} tells clients to use {broker.address}, which takes no connection from here: "
        f"{broker.problem}",
        f"{count(leads, 'partition')} that it leads cannot be read or written from this host; if the broker runs, its "
        "advertised.listeners is not what this network reaches",
        f"kafka-configs --bootstrap-server {picture.setup.bootstrap_servers} --entity-type brokers --entity-name "
        f"{broker.node} --describe --all | grep advertised.listeners",
    )


def _partitions(topic: TopicSeen, address: str) -> Iterator[Finding]:
    leaderless = [str(each.number) for each in topic.partitions if each.leader is None]
    if leaderless:
        yield fault(
            topic.name,
            f"{topic.name}: {count(len(leaderless), 'partition')} of {len(topic.partitions)} without a leader: "
            f"{some(leaderless)}",
            "the brokers that hold them are down; what is keyed to them is neither read nor written",
            f"kafka-topics --bootstrap-server {address} --describe --unavailable-partitions",
            value=len(leaderless),
            bound=0,
        )
    short = [str(each.number) for each in topic.partitions if len(each.in_sync) < len(each.replicas)]
    if short and not leaderless:
        yield warning(
            topic.name,
            f"{topic.name}: {count(len(short), 'partition')} of {len(topic.partitions)} with fewer replicas in sync "
            f"than there are: {some(short)}",
            "a broker is down or behind; another loss may stop writing, or lose records",
            f"kafka-topics --bootstrap-server {address} --describe --under-replicated-partitions",
            value=len(short),
            bound=0,
        )
