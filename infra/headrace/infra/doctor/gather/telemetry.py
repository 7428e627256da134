"""The teams' own topics under [bridge.sources]: their newest records, run through the mapping as the bridge would."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headrace.infra.configuration.bridge_sources import read_mapping, read_sources
from headrace.infra.configuration.config import Config
from headrace.infra.configuration.entry_point import load_rewrite
from headrace.infra.doctor.core.picture import Presence, Telemetry, TopicSeen
from headrace.infra.doctor.gather.time_left import TimeLeft
from headrace.infra.topic_readers.sample import sample_topic
from headrace.schemas.errors import HeadraceError, InvalidInputError
from headrace.streams.bridge.settings import BridgeSettings, SourceSettings
from headrace.streams.core.mapping.parse import load_preset
from headrace.streams.core.trial.trial import Trial, try_mapping

RECORDS = 200


def try_telemetry(
    config: Config, topics: Mapping[str, TopicSeen], left: TimeLeft
) -> tuple[tuple[Telemetry, ...], tuple[str, ...]]:
    """Give each source as it is, and what is wrong with the mappings."""
    found: list[Telemetry] = []
    problems: list[str] = []
    for name, settings in config.bridge.sources.items():
        seen = topics.get(settings.topic)
        source = Telemetry(
            name, settings.topic, _asked_for(settings), Presence.THERE if seen is None else seen.presence, None, None
        )
        try:
            read_sources(BridgeSettings(sources={name: settings}))
        except InvalidInputError as error:
            problems += error.problems
            found.append(replace(source, problem="its mapping cannot be used"))
            continue
        found.append(_tried(config, source, settings, left))
    return tuple(found), tuple(problems)


def _asked_for(settings: SourceSettings) -> str:
    """Give the flags with which `headrace map test` tries the same."""
    carrier = f" --carrier {settings.carrier}" if settings.carrier else ""
    return (f"--mapping {settings.mapping}" if settings.mapping else f"--preset {settings.preset}") + carrier


def _tried(config: Config, source: Telemetry, settings: SourceSettings, left: TimeLeft) -> Telemetry:
    if source.presence is not Presence.THERE:
        return source
    if left.is_up:
        return replace(source, problem="not tried: the time is up")
    try:
        records = sample_topic(config.kafka, settings.topic, RECORDS, timeout_s=left.call_s)
        newest_ms = max((record.timestamp_ms for record in records), default=None)
        # A series without a key is spread over partitions: in the order of time, as the streams put it.
        in_time = sorted(records, key=lambda record: (record.timestamp_ms, record.partition, record.offset))
        mapping = load_preset(settings.preset) if settings.preset else read_mapping(Path(settings.mapping))
        rewrite = None if mapping.python is None else load_rewrite(mapping.python)
        carrier = settings.carrier or mapping.carrier or ""
        trial: Trial = try_mapping(in_time, mapping, carrier, rewrite, config.solver.expired_after_ms)
    except HeadraceError as error:
        return replace(source, problem=str(error))
    return replace(source, newest_ms=newest_ms, trial=trial)
