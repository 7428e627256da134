from struct import pack

import pytest

from headrace.streams.core.level import Level
from headrace.streams.core.level_bytes import pack_level, read_level
from headrace.streams.core.packing import PackingError, Reader
from headrace.streams.core.taken_back import Followed

LEVEL, KEPT = Level(90.0, 3.0, 70_000), Level(60.0, 45.0, 66_000)
PLAIN = pack("<dqHd", 90.0, 70_000, 7, 3.0)

WRITTEN = {
    "none": (None, pack("<BdqH", 0, 0.0, 0, 7)),
    "plain": (Followed(LEVEL), b"\2" + PLAIN),
    "keeping": (Followed(LEVEL, kept=KEPT), b"\3" + PLAIN + pack("<ddq", 60.0, 45.0, 66_000)),
    "returned": (Followed(LEVEL, from_ms=68_000), b"\4" + PLAIN + pack("<q", 68_000)),
}


@pytest.mark.parametrize(("followed", "written"), WRITTEN.values(), ids=WRITTEN)
def test_a_level_is_read_as_it_was_written_and_its_layout_stays(followed: Followed | None, written: bytes) -> None:
    assert pack_level(followed, 7) == written
    reader = Reader(written)
    assert read_level(reader) == (followed, 7)
    reader.end()


def test_a_level_without_evidence_is_read_as_six_seconds_of_it() -> None:
    assert read_level(Reader(pack("<BdqH", 1, 90.0, 70_000, 7))) == (Followed(Level(90.0, 6.0, 70_000)), 7)


@pytest.mark.parametrize(
    "strange",
    [
        b"\5" + PLAIN,
        b"\2" + PLAIN[:-1],
        b"\2" + pack("<dqHd", float("nan"), 70_000, 7, 3.0),
        b"\2" + pack("<dqHd", -1.0, 70_000, 7, 3.0),
        b"\2" + pack("<dqHd", 90.0, 70_000, 7, 0.0),
        b"\3" + PLAIN + pack("<ddq", 60.0, float("inf"), 66_000),
        b"\3" + PLAIN + pack("<ddq", 60.0, 45.0, 70_000),
        b"\4" + PLAIN + pack("<q", 70_000),
        b"\4" + PLAIN + pack("<q", 1 << 62),
    ],
)
def test_bytes_that_no_fold_has_written_are_refused(strange: bytes) -> None:
    with pytest.raises(PackingError):
        read_level(Reader(strange))
