"""A snapshot made ready for requests: one immutable value, which a router holds by one reference.

Only routes that changed are built again; the others' tables are taken over as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from headrace.dataplane.route_table import RouteTable, build_table
from headrace.dataplane.settings import DataPlaneSettings
from headrace.schemas.check_snapshot import check_route
from headrace.schemas.weights import Snapshot, SnapshotCommit, SnapshotMode

RouteName = tuple[str, str]
"""(model, request class): the cluster is the router's own."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The routes of one cluster, ready. `rebuilt` of the `tables` are new; the others were taken over."""

    commit: SnapshotCommit
    tables: Mapping[RouteName, RouteTable]
    rebuilt: int


class NotInstalledReason(StrEnum):
    """Why a snapshot was not installed; the one before stays."""

    NOT_NEWER = "NOT_NEWER"
    SHADOW = "SHADOW"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True)
class NotInstalled:
    """A snapshot that was left aside, and why, in words."""

    reason: NotInstalledReason
    sentence: str


def install(
    snapshot: Snapshot, cluster: str, settings: DataPlaneSettings, previous: Installation | None
) -> Installation | NotInstalled:
    """Build what a router routes by. The snapshot is checked again here, whoever checked it before.

    What is no snapshot, or holds what is none of its parts, is INVALID too: a router keeps its last good one.
    """
    try:
        return _install(snapshot, cluster, settings, previous)
    except Exception as error:  # noqa: BLE001 - whatever a wrong type breaks, it is the snapshot that is wrong
        what = f"a {type(snapshot).__name__}: {type(error).__name__}: {error}"
        return NotInstalled(NotInstalledReason.INVALID, f"no snapshot that can be used: {what}")


def _install(
    snapshot: Snapshot, cluster: str, settings: DataPlaneSettings, previous: Installation | None
) -> Installation | NotInstalled:
    commit = snapshot.commit
    if commit.mode is not SnapshotMode.LIVE:
        return NotInstalled(NotInstalledReason.SHADOW, f"mode is {commit.mode}; data planes route by LIVE ones only")
    if previous is not None and (commit.epoch, commit.version) <= (previous.commit.epoch, previous.commit.version):
        installed = f"{previous.commit.epoch}/{previous.commit.version}"
        sentence = f"snapshot {commit.epoch}/{commit.version} is not newer than {installed}"
        return NotInstalled(NotInstalledReason.NOT_NEWER, sentence)
    before: Mapping[RouteName, RouteTable] = {} if previous is None else previous.tables
    tables: dict[RouteName, RouteTable] = {}
    rebuilt = 0
    for weights in snapshot.routes:
        if weights.cluster != cluster:
            continue
        name = (weights.model, weights.request_class)
        if name in tables:
            return NotInstalled(NotInstalledReason.INVALID, f"{weights.route} is there twice")
        old = before.get(name)
        if old is not None and old.weights == weights:
            tables[name] = old
            continue
        problems = check_route(weights)
        if problems:
            return NotInstalled(NotInstalledReason.INVALID, f"{weights.route}: {'; '.join(problems)}")
        tables[name] = build_table(weights, settings, old)
        rebuilt += 1
    return Installation(commit, tables, rebuilt)
