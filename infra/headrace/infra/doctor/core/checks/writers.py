"""One solver writes the weights, and one group of workers the states."""

from collections.abc import Iterator
from itertools import pairwise

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.picture import Picture, Written
from headrace.infra.doctor.core.words import duration, some
from headrace.schemas.topics import WEIGHTS

FOLLOWS_FROM = ("brokers",)

MOST_EPOCHS = 3
"""New writers within what was read (ten minutes); a rolling restart makes two."""


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give what shows that two write where one should."""
    written = picture.written or ()
    name = picture.setup.table[WEIGHTS].name
    old = _older_after_newer(written)
    if old is not None:
        newer, older = old
        yield fault(
            name,
            f"{name}: offset {older.offset} is of epoch {older.epoch}, version {older.version}, after epoch "
            f"{newer.epoch}, version {newer.version}: two write it; 1 may",
            "readers ignore the older one; it does not know that it was replaced, or is no headrace solver at all",
            *_one_only(name),
            value=2,
            bound=1,
        )
    epochs = [each for each in written if each.is_commit]
    firsts = [b for a, b in pairwise(epochs) if b.epoch != a.epoch]
    if len(firsts) >= MOST_EPOCHS:
        yield warning(
            name,
            f"{name}: {len(firsts)} times another writer in {duration(now_ms - firsts[0].record_ms)}; at most "
            f"{MOST_EPOCHS - 1}",
            "two solvers fence each other by turns, or one is started again and again; each begins with every route",
            *_one_only(name),
            value=len(firsts),
            bound=MOST_EPOCHS - 1,
        )
    if picture.went_back:
        topic = picture.went_back[0][0]
        keys = [key.decode("utf-8", "replace") for at, key in picture.went_back if at == topic]
        yield fault(
            topic,
            f"{topic}: the state of {some(keys)} goes back to an earlier offset: two write it; 1 may",
            "two groups of `headrace streams` write the same states: each undoes the other's",
            "headrace streams --print-config | grep group_id",
            f"kafka-consumer-groups --bootstrap-server {picture.setup.bootstrap_servers} --list",
            value=2,
            bound=1,
        )


def _older_after_newer(written: tuple[Written, ...]) -> tuple[Written, Written] | None:
    """Give the last record that stands behind the commit of a newer epoch, or repeats a version, and that commit."""
    found: tuple[Written, Written] | None = None
    newest: Written | None = None
    for each in written:
        if newest is not None:
            repeats = each.is_commit and each.epoch == newest.epoch and each.version <= newest.version
            if each.epoch < newest.epoch or repeats:
                found = (newest, each)
        if each.is_commit and (newest is None or (each.epoch, each.version) > (newest.epoch, newest.version)):
            newest = each
    return found


def _one_only(topic: str) -> tuple[str, ...]:
    return (
        "headrace solver --set solver.leader_election=true",
        f"headrace tail --since 10m --no-follow --json | jq -c '[.commit.epoch, .commit.version]'  # of {topic}",
    )
