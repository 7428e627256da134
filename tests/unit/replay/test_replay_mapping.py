"""A team's own records in a history are translated anew, by the bridge's own code, to the states of a live bridge."""

from dataclasses import replace
from pathlib import Path

import pytest

from collector import batch, engine_id
from headrace.replay.core.history import Found, HistoryError, Span
from headrace.replay.core.refold import Refold
from headrace.replay.runs.mapped import mapped_folder
from headrace.replay.sources.export import foreign_topic
from headrace.replay.sources.folder import HistoryFolder
from headrace.replay.sources.manifest import Manifest, Part, write_manifest
from headrace.replay.sources.writers import Writers
from headrace.schemas.check_state import State
from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand, EngineSignals, EngineStatus, Health, Vantage
from headrace.schemas.state import EngineState
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, Topic
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.mapping.parse import load_preset, parse_mapping
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings
from replay_history import START_MS, TABLE, TOPICS

TEAM = "team.metrics"
OPTIONS = DecodeOptions("otlp_proto")
PERIODS = 6
STATUS = EngineStatus(Health.HEALTHY, 1, 1, 1, 1.0, 0.0, 0.1)


def team_records() -> list[RawRecord]:
    found: list[RawRecord] = []
    for period in range(PERIODS):
        at_ms = START_MS + 1_000 * (period + 1)
        found.append(RawRecord(TEAM, 1, period, at_ms + 20, None, batch(2, period, at_ms)))
    return found


def signals_of(records: list[RawRecord], translator: Translator) -> list[tuple[type, bytes, bytes, int]]:
    """What a bridge publishes that has read them one by one."""
    found: list[tuple[type, bytes, bytes, int]] = []
    for record in records:
        packs = Packs(record.topic, record.partition, translator.mapping.hash, "bridge")
        packs.add(translator.translate(record, record.timestamp_ms))
        found += [(*signal, record.timestamp_ms) for signal in packs.take()]
    return found


def written(folder: Path, topic: Topic, records: list[RawRecord]) -> list[Part]:
    writers = Writers(folder, topic)
    for record in records:
        writers.write(record)
    return writers.close()


def logged(topic: Topic, signals: list[tuple[bytes, bytes, int]]) -> list[RawRecord]:
    offsets = dict.fromkeys(range(topic.partitions), 0)
    records: list[RawRecord] = []
    for key, value, at_ms in sorted(signals, key=lambda each: each[2]):
        partition = partition_of(key, topic.partitions)
        records.append(RawRecord(topic.name, partition, offsets[partition], at_ms, key, value))
        offsets[partition] += 1
    return records


def folder_of(path: Path, bridged: Translator) -> Path:
    """A history with the team's topic, what the bridge made of it, and signals that came otherwise."""
    engine, demand = TABLE[SIGNALS_ENGINE], TABLE[SIGNALS_DEMAND]
    own = EngineSignals("native", "s", Vantage.ENGINE, START_MS, START_MS + 1_000, (), STATUS)
    asked = Demand("A", "m", "default", "g", START_MS, START_MS + 1_000, 40, 0, 0)
    told = [(key, value, at_ms) for kind, key, value, at_ms in signals_of(team_records(), bridged)]
    parts = written(path, engine, logged(engine, [*told, (own.key, encode(own), START_MS + 1_000)]))
    parts += written(path, demand, logged(demand, [(asked.key, encode(asked), START_MS + 1_000)]))
    parts += written(path, foreign_topic(TEAM), team_records())
    write_manifest(path, Manifest(Span(START_MS, START_MS + 10_000), 0, TOPICS, tuple(parts)))
    return path


def states(history: HistoryFolder, role: str = SIGNALS_ENGINE) -> dict[bytes, State]:
    fold = Refold(history.topics[role], StreamsSettings())
    for place in history.places(role):
        fold.take(history.read(place), None)
    assert fold.findings() == ()
    return {key: replace(state, applied_offset=0, signal_timestamp_ms=0) for key, state in fold.told().items()}


def test_the_mapping_that_was_live_comes_to_the_states_that_were_live(tmp_path: Path) -> None:
    live = Translator(load_preset("vllm_v1"), OPTIONS)
    folder = folder_of(tmp_path / "history", live)
    history = HistoryFolder(mapped_folder(folder, tmp_path / "anew", {TEAM: live}))
    found = states(history)
    assert found == states(HistoryFolder(folder))
    assert set(found) == {b"native", *(engine_id(n).encode() for n in range(2))}
    assert states(history, SIGNALS_DEMAND) == states(HistoryFolder(folder), SIGNALS_DEMAND)


def test_another_mapping_takes_the_place_of_the_one_that_was_live_and_of_nothing_else(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "history", Translator(load_preset("vllm_v1"), OPTIONS))
    other = parse_mapping("preset: vllm_v1\nidentity: {engine: ['other/{service.instance.id}']}")
    found = states(HistoryFolder(mapped_folder(folder, tmp_path / "anew", {TEAM: Translator(other, OPTIONS)})))
    assert set(found) == {b"native", *(f"other/{engine_id(n)}".encode() for n in range(2))}
    told = found[f"other/{engine_id(0)}".encode()]
    assert isinstance(told, EngineState)
    assert any(latency.count for latency in told.latencies)


def test_what_a_mapping_cannot_use_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "history"
    broken = [replace(record, value=b"no protobuf") for record in team_records()]
    parts = written(path, foreign_topic(TEAM), broken)
    write_manifest(path, Manifest(Span(START_MS, START_MS + 10_000), 0, TOPICS, tuple(parts)))
    translator = Translator(load_preset("vllm_v1"), OPTIONS)
    history = HistoryFolder(mapped_folder(path, tmp_path / "anew", {TEAM: translator}))
    (finding,) = history.findings
    assert (finding.found, finding.topic, finding.count) == (Found.UNREADABLE, TEAM, PERIODS)


def test_a_topic_that_the_history_does_not_hold_is_refused_with_what_it_holds(tmp_path: Path) -> None:
    translator = Translator(load_preset("vllm_v1"), OPTIONS)
    folder = folder_of(tmp_path / "history", translator)
    with pytest.raises(HistoryError, match=r"does not hold other; of the team's own topics it holds team\.metrics"):
        mapped_folder(folder, tmp_path / "anew", {"other": translator})
