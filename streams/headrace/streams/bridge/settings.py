"""Settings of the bridge: which topics are read, and what their telemetry means. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le

from headrace.schemas.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One topic of a team's own.

    Attributes:
        topic: its full name.
        carrier: how its records are written (`headrace map init` finds out); empty: what the mapping says.
        mapping: mapping file (YAML); one of mapping and preset.
        preset: a preset as it ships.
        vantage: where latencies were seen from, instead of what the mapping says.
    """

    topic: str
    carrier: str = ""
    mapping: str = ""
    preset: str = ""
    vantage: Literal["", "ENGINE", "GATEWAY", "CLIENT"] = ""


@dataclass(frozen=True, slots=True)
class BridgeSettings:
    """What `headrace bridge` reads, and how.

    Attributes:
        sources: topics by a name of your own.
        group_id: consumer group; its members share the partitions.
        session_timeout_ms: silence after which the broker takes a dead member's partitions away.
        begin: where a group that has committed nothing yet begins: at the newest records, or at the oldest.
        batch_max: most records that are translated before what they gave is published.
        batch_wait_ms: how long a record waits for others to be published with.
        report_ms: time between two log lines that say what was done.
        stop_wait_ms: longest time that a stop waits for what is under way to be delivered.
        metrics_port: where Prometheus finds the bridge's metrics; 0 = nowhere. They are brought up to date every
            `report_ms`.
        metrics_host: the address that the metrics are served at.
    """

    sources: Mapping[str, SourceSettings] = field(default_factory=dict[str, SourceSettings])
    group_id: str = "headrace-bridge"
    session_timeout_ms: Annotated[int, Ge(1_000), Le(1_800_000)] = 10_000
    begin: Literal["latest", "earliest"] = "latest"
    batch_max: Annotated[int, Ge(1), Le(10_000)] = 500
    batch_wait_ms: Annotated[int, Ge(1), Le(10_000)] = 50
    report_ms: Annotated[int, Ge(100), Le(3_600_000)] = 10_000
    stop_wait_ms: Annotated[int, Ge(100), Le(300_000)] = 10_000
    metrics_port: Annotated[int, Ge(0), Le(65_535)] = 0
    metrics_host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        """Hold the sources against each other.

        Raises:
            InvalidInputError: a source names no mapping, or both kinds, or two read one topic.
        """
        problems: list[str] = []
        topics: dict[str, str] = {}
        for name, source in self.sources.items():
            at = f"bridge.sources.{name}"
            if bool(source.mapping) is bool(source.preset):
                found = "both" if source.mapping else "neither"
                problems.append(f"{at} has {found} of mapping and preset; write one of the two")
            if source.topic in topics:
                problems.append(
                    f"{at}.topic is {source.topic!r}, which bridge.sources.{topics[source.topic]} reads too"
                )
            topics[source.topic] = name
        if problems:
            raise InvalidInputError("bridge settings", tuple(problems))
