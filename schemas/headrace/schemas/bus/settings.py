"""How to reach Kafka. Pure: the clients that use it are made in `headrace.schemas.bus.clients`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

BrokerKind = Literal["kafka", "embedded"]

FIXED_OPTIONS: Mapping[str, str] = {
    "bootstrap.servers": "set kafka.bootstrap_servers instead",
    "client.id": "set kafka.client_id instead",
    "partitioner": "is murmur2_random everywhere: keyed state must be found by Java, Faust and us alike",
    "enable.idempotence": "is always on",
    "acks": "is always all",
    "isolation.level": "is read_committed, but on the embedded broker: nobody may see half a snapshot",
    "enable.partition.eof": "is always on: start-up reads to the end of each partition",
    "enable.auto.commit": "is always off: an offset is committed after its effect",
    "transactional.id": "is given by the worker that owns the topic",
    "group.id": "is given by the worker that owns the group",
}
"""librdkafka options that headrace sets itself because its correctness rests on them, each with the reason."""


_HOST = re.compile(r"\[[0-9A-Fa-f:.]+(%[\w.-]+)?\]|[\w.-]+")
"""A name, an address, or an IPv6 address in brackets. No scheme: librdkafka takes one for a protocol, Faust none."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """How to reach Kafka.

    Attributes:
        bootstrap_servers: `host:port`, several joined by commas.
        options: any librdkafka option, passed through (security, socket and batching options).
        broker: which limits to respect: `embedded` for the in-memory broker of the extra of that name, else `kafka`.
        client_id: what the broker's logs and quotas call us.
    """

    bootstrap_servers: str = "127.0.0.1:9092"
    options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    broker: BrokerKind = "kafka"
    client_id: str = "headrace"


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Where schemas of Confluent-framed records are looked up.

    Attributes:
        url: address of the schema registry; empty where none is used.
        options: further options of the registry client, passed through (`basic.auth.user.info`, `ssl.ca.location`).
    """

    url: str = ""
    options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


def kafka_problems(kafka: KafkaSettings) -> tuple[str, ...]:
    """Give a sentence for each setting that cannot be used; empty where all can.

    Only what can be known without a broker: addresses without a port, and options that headrace must set itself.
    """
    problems = [
        f"kafka.bootstrap_servers has {address!r}; expected host:port"
        for address in kafka.bootstrap_servers.split(",")
        if not _is_address(address.strip())
    ]
    problems += [
        f"kafka.options.{name!r} is {value!r}; it {FIXED_OPTIONS[name]}"
        for name, value in kafka.options.items()
        if name in FIXED_OPTIONS
    ]
    return tuple(problems)


def _is_address(address: str) -> bool:
    host, colon, port = address.rpartition(":")
    return (
        bool(_HOST.fullmatch(host) and colon)
        and port.isascii()
        and port.isdigit()
        and len(port) <= 5
        and 0 < int(port) < 65_536
    )
