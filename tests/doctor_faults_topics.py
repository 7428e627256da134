"""Planted faults of brokers, topics, permissions, records and the workers that read them."""

from collections.abc import Callable
from dataclasses import replace

from doctor_planted import APPLY, MINUTE_MS, F, Planted, W
from doctor_system import Put, System
from headrace.infra.doctor.core.picture import BrokerSeen, Presence, Telemetry
from headrace.schemas.codec import encode, encode_confluent
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.schemas.signals import EngineSignals, NetworkProbe
from headrace.schemas.topics import (
    DEAD_LETTERS,
    SHADOW,
    SIGNALS_DEMAND,
    SIGNALS_ENGINE,
    STATE_ENGINE,
    STATE_NETWORK,
    STATE_OF,
    WEIGHTS,
)
from headrace.streams.bridge.settings import BridgeSettings, SourceSettings
from headrace.streams.core.mapping.parse import load_preset
from headrace.streams.core.trial.trial import try_mapping


def _records(*puts: Callable[[System], Put]) -> Callable[[System], None]:
    def plant(system: System) -> None:
        system.raw += [put(system) for put in puts]

    return plant


def _config(role: str, **settings: str) -> Callable[[System], None]:
    def plant(system: System) -> None:
        system.configs[role] = {name.replace("_", "."): value for name, value in settings.items()}

    return plant


def _missing(role: str) -> Callable[[System], None]:
    return lambda system: system.missing.add(role)


def _partitions(role: str, number: int) -> Callable[[System], None]:
    return lambda system: system.partitions.update({role: number})


def _letters(reason: RejectReason, detail: str, number: int = 60) -> Callable[[System], None]:
    def plant(system: System) -> None:
        topic = system.setup.table[SIGNALS_ENGINE].name
        system.letters += [
            (
                system.now_ms - 1_000 * n,
                DeadLetter(topic, 0, n, system.now_ms, b"k", b"v", reason, detail, "streams"),
            )
            for n in reversed(range(number))
        ]

    return plant


def _flood(system: System) -> None:
    """Seventy thousand bad records, of which a doctor reads a few."""
    _letters(RejectReason.MALFORMED, "no Avro framing")(system)
    system.more[DEAD_LETTERS] = system.more[SIGNALS_ENGINE] = 70_000


def _old_unread(system: System) -> None:
    """Next to nothing comes any more; what is unread is three minutes old, however long it would take to come anew."""
    system.behind[SIGNALS_ENGINE] = 5_000
    system.unread_for_ms[SIGNALS_ENGINE] = 180_000


def _registered(system: System) -> Put:
    signal = next(signal for _, signal in system.signals if isinstance(signal, EngineSignals))
    return Put(SIGNALS_ENGINE, signal.key, encode_confluent(signal, 17), system.now_ms)


def _foreign(system: System) -> Put:
    """A probe under the key of an engine, on the engines' topic."""
    signal = next(signal for _, signal in system.signals if isinstance(signal, NetworkProbe))
    return Put(SIGNALS_ENGINE, b"engine-a", encode(signal), system.now_ms)


def _all_partitions(system: System) -> None:
    system.partitions = dict.fromkeys((*STATE_OF, *STATE_OF.values()), 4)


def _no_worker(system: System) -> None:
    """Signals came and nothing was written of them for two minutes."""
    for table in (system.states, system.demands, system.links):
        for key, state in table.items():
            at_ms = state.last_signal_ms - 120_000
            table[key] = replace(state, last_signal_ms=at_ms, as_of_ms=at_ms, signal_timestamp_ms=at_ms)
    system.members["streams"] = 0


def _slow_worker(system: System) -> None:
    system.behind[SIGNALS_ENGINE] = 5_000


def _source(problem_mapping: str) -> Callable[[System], None]:
    """A team's topic whose records a preset for another engine finds nothing in."""

    def plant(system: System) -> None:
        source = SourceSettings("team.metrics", carrier="prom_text", preset=problem_mapping)
        system.setup = replace(system.setup, bridge=BridgeSettings(sources={"team": source}))
        text = b"# TYPE my_own_latency_ms gauge\nmy_own_latency_ms 12\n"
        records = [_raw("team.metrics", n, system.now_ms, text) for n in range(5)]
        trial = try_mapping(records, load_preset(problem_mapping), "prom_text")
        seen = Telemetry("team", source.topic, f"--preset {problem_mapping}", Presence.THERE, system.now_ms, trial)
        system.telemetry.append(seen)

    return plant


def _raw(topic: str, offset: int, at_ms: int, value: bytes):  # noqa: ANN202 - a RawRecord
    from headrace.schemas.raw import RawRecord

    return RawRecord(topic, 0, offset, at_ms, b"k", value)


def _dead_collector(system: System) -> None:
    _source("vllm_v1")(system)
    system.telemetry = [replace(system.telemetry[0], newest_ms=system.now_ms - 10 * MINUTE_MS)]


def _denied(system: System) -> None:
    system.operations[WEIGHTS] = frozenset({"DESCRIBE", "READ"})


def _unreachable(system: System) -> None:
    system.unreachable = "127.0.0.1:9092 does not answer: Connection refused"


def _advertised(system: System) -> None:
    system.brokers = (*system.brokers, BrokerSeen("kafka-1.internal:9092", 2, "Name or service not known"))


TOPICS: tuple[Planted, ...] = (
    Planted(
        "no broker answers",
        _unreachable,
        "brokers",
        F,
        "does not answer: Connection refused",
        "headrace broker up",
        "picture",
    ),
    Planted(
        "a broker advertises an address that is not reached",
        _advertised,
        "brokers",
        F,
        "broker 2 tells clients to use kafka-1.internal:9092",
        "advertised.listeners",
        "picture",
    ),
    Planted(
        "a topic with the wrong cleanup policy",
        _config(WEIGHTS, cleanup_policy="delete"),
        "topics",
        F,
        "cleanup.policy is delete; it should be compact",
        APPLY,
    ),
    Planted("a missing topic", _missing(SHADOW), "topics", F, "shadow is missing", APPLY),
    Planted(
        "a state topic with the wrong number of partitions",
        _partitions(STATE_NETWORK, 1),
        "topics",
        F,
        "has 1 partitions; it should have",
        "--delete --topic",
    ),
    Planted(
        "a configuration with other partitions than all topics have",
        _all_partitions,
        "topics",
        W,
        "has 4 partitions; it should have 8 (topics.partitions), as every other",
        "headrace topics diff --set topics.partitions=4",
        "picture",
    ),
    Planted(
        "stamps of the producers' clocks",
        _config(SIGNALS_DEMAND, message_timestamp_type="CreateTime"),
        "topics",
        W,
        "message.timestamp.type is CreateTime",
        APPLY,
    ),
    Planted(
        "a retention too short for replay",
        _config(SIGNALS_ENGINE, retention_ms="3600000"),
        "history",
        W,
        "retention.ms is 3600000 (60 min); it should be 604800000 (7 d",
        APPLY,
    ),
    Planted(
        "a compaction that forgets history",
        _config(STATE_ENGINE, min_compaction_lag_ms="0"),
        "history",
        W,
        "min.compaction.lag.ms is 0",
        APPLY,
    ),
    Planted(
        "a topic bounded by size",
        _config(SIGNALS_ENGINE, retention_bytes="1000000"),
        "history",
        W,
        "retention.bytes is 1000000; it should be -1",
        "--delete-config retention.bytes",
    ),
    Planted(
        "a missing ACL",
        _denied,
        "permissions",
        F,
        "may not WRITE topic headrace.weights",
        "--operation Write --topic headrace.weights",
        "apache",
    ),
    Planted(
        "a telemetry topic that nobody writes",
        _dead_collector,
        "telemetry",
        F,
        "is 10 min old; at most",
        "--topic team.metrics --max-messages 1",
        "picture",
    ),
    Planted(
        "a mapping that matches nothing",
        _source("vllm_v1"),
        "telemetry",
        F,
        "matches nothing in 5 records",
        "headrace map test --topic team.metrics --preset vllm_v1",
        "picture",
    ),
    Planted("no worker", _no_worker, "workers", F, "no `headrace streams`", "headrace streams"),
    Planted(
        "a worker that lags",
        _slow_worker,
        "lag",
        F,
        "is 40000 records behind on headrace.signals.engine",
        "headrace streams --workers 2",
        "apache",
    ),
    Planted(
        "a worker whose earliest unread record is minutes old",
        _old_unread,
        "lag",
        F,
        "records behind on headrace.signals.engine, the earliest 3 min old; at most 10 s",
        "headrace streams --workers 2",
        "picture",
    ),
    Planted(
        "a flood of bad records",
        _flood,
        "dead_letters",
        F,
        "60 of the newest 60 MALFORMED from headrace.signals.engine",
        "headrace dead-letters --since 10m --reason MALFORMED",
        "picture",
    ),
    Planted(
        "no solver",
        lambda system: system.members.update(solver=0),
        "workers",
        F,
        "no `headrace solver` runs",
        "headrace solver",
        "picture",
    ),
    Planted(
        "records that cannot be decoded",
        _records(lambda s: Put(STATE_ENGINE, b"engine-a", b"not avro", s.now_ms)),
        "records",
        F,
        "1 record of the newest cannot be used, MALFORMED",
        "kafka-console-consumer",
    ),
    Planted(
        "records of a foreign schema",
        _records(_foreign),
        "records",
        W,
        "WRONG_RECORD",
        "headrace dead-letters --topic headrace.signals.engine",
    ),
    Planted(
        "framing of a registry that is not configured",
        _records(_registered),
        "records",
        W,
        "UNKNOWN_SCHEMA",
        "--set registry.url=",
    ),
    Planted(
        "an engine that the fleet has by another name",
        _letters(RejectReason.UNKNOWN_ENGINE, "engine_id is 'k'", 2),
        "unknown_engines",
        W,
        "the fleet does not have (which has engine-a, engine-b, engine-c): k",
        "headrace fleet apply fleet.toml",
        "picture",
    ),
    Planted(
        "dead letters that grow",
        _letters(RejectReason.UNKNOWN_ENGINE, "engine_id is 'x'"),
        "dead_letters",
        F,
        "60 of them UNKNOWN_ENGINE",
        "headrace fleet apply fleet.toml",
    ),
)
