import hashlib
import math
from dataclasses import replace

import pytest

from headrace.schemas.codec import encode
from headrace.schemas.dead_letters import DeadLetter, Rejected, RejectReason
from headrace.schemas.raw import RawRecord
from headrace.schemas.records import Record
from headrace.schemas.signals import Demand, Distribution, EngineSignals, Metric, NetworkProbe, Vantage
from headrace.schemas.topics import DEAD_LETTERS, MAX_SIGNAL_BYTES, TopicSettings, topic_table
from headrace.streams.core.admission import MAX_LETTER_VALUE_BYTES, admit, dead_letter
from headrace.streams.core.partitioner import murmur2, partition_of

FLEET = {b"e1"}
SIGNAL = EngineSignals(
    "e1", "s", Vantage.ENGINE, 0, 1_000, (Distribution("m", Metric.TTFT, 1, 0.1, 0.1, 0.1, 0, -27, (1,)),), None
)


def raw(signal: Record, key: bytes | None = None, partition: int | None = None) -> RawRecord:
    own: bytes = signal.key if key is None else key
    place = partition_of(own, 8) if partition is None else partition
    return RawRecord("headrace.signals.engine", place, 3, 1_005, own, encode(signal))


def reason(record: RawRecord, fleet: set[bytes] | None = None) -> RejectReason | None:
    outcome = admit(record, EngineSignals, 8, FLEET if fleet is None else fleet)
    return outcome.reason if isinstance(outcome, Rejected) else None


def test_a_sound_signal_of_a_known_engine_is_admitted() -> None:
    assert admit(raw(SIGNAL), EngineSignals, 8, FLEET) == SIGNAL


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"not avro", RejectReason.MALFORMED),
        (None, RejectReason.MALFORMED),
        (b"\xc3\x01" + b"\x00" * 20, RejectReason.UNKNOWN_SCHEMA),
        (encode(SIGNAL)[:-3], RejectReason.MALFORMED),
        (encode(NetworkProbe("c", "s", "x", 1, 0.1)), RejectReason.WRONG_RECORD),
    ],
)
def test_bytes_that_hold_no_signal_are_refused_with_the_reason(value: bytes | None, expected: RejectReason) -> None:
    assert reason(replace(raw(SIGNAL), value=value)) is expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"sum_s": math.nan}, RejectReason.NOT_FINITE),
        ({"sum_s": -1.0}, RejectReason.NEGATIVE),
        ({"count": -1}, RejectReason.NEGATIVE),
        ({"count": 2}, RejectReason.INCONSISTENT),
    ],
)
def test_numbers_that_may_not_reach_a_sum_are_refused(change: dict[str, float], expected: RejectReason) -> None:
    bad = replace(SIGNAL, distributions=(replace(SIGNAL.distributions[0], **change),))
    assert reason(raw(bad)) is expected


def test_a_key_that_is_not_the_signals_is_refused() -> None:
    assert reason(raw(SIGNAL, key=b"e2")) is RejectReason.KEY_MISMATCH
    assert reason(replace(raw(SIGNAL), key=None)) is RejectReason.KEY_MISMATCH


def test_a_key_in_the_partition_of_another_hash_is_refused() -> None:
    wrong = (partition_of(b"e1", 8) + 1) % 8
    assert reason(raw(SIGNAL, partition=wrong)) is RejectReason.WRONG_PARTITION


def test_an_engine_that_fleet_does_not_name_is_refused_and_off_line_every_engine_is_known() -> None:
    assert reason(raw(SIGNAL), fleet={b"e2"}) is RejectReason.UNKNOWN_ENGINE
    assert admit(raw(SIGNAL), EngineSignals, 8, None) == SIGNAL


def test_demand_needs_no_engine() -> None:
    demand = Demand("c", "m", "default", "s", 0, 1_000, 5, 0, 0)
    assert admit(raw(demand), Demand, 8, set()) == demand


def test_a_dead_letter_holds_the_record_as_it_came() -> None:
    record = replace(raw(SIGNAL), value=b"junk")
    rejected = admit(record, EngineSignals, 8, FLEET)
    assert isinstance(rejected, Rejected)
    letter = dead_letter(record, rejected)
    assert letter == DeadLetter(
        record.topic, record.partition, 3, 1_005, b"e1", b"junk", RejectReason.MALFORMED, rejected.detail, "streams"
    )


def test_a_dead_letter_of_anything_is_below_its_topics_limit_and_names_what_was_cut() -> None:
    huge = replace(raw(SIGNAL), key=b"k" * 2_000_000, value=b"\0" * 30_000_000)
    letter = dead_letter(huge, Rejected(RejectReason.TOO_LARGE, "d" * 1_000_000))
    limit = int(topic_table(TopicSettings())[DEAD_LETTERS].config["max.message.bytes"])
    assert len(encode(letter)) < limit - 1024 * 1024
    assert letter.record_value == bytes(MAX_LETTER_VALUE_BYTES)
    assert f"value is cut to {MAX_LETTER_VALUE_BYTES} of 30000000 bytes" in letter.detail
    assert hashlib.sha256(b"\0" * 30_000_000).hexdigest() in letter.detail
    assert "of 2000000 bytes" in letter.detail


def test_what_fits_its_own_topic_fits_into_a_dead_letter_whole() -> None:
    largest = replace(raw(SIGNAL), value=b"x" * MAX_SIGNAL_BYTES)
    assert dead_letter(largest, Rejected(RejectReason.MALFORMED, "no")).record_value == largest.value


# From the test of Kafka's own Java client, UtilsTest.testMurmur2 (signed 32-bit there).
@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_that_of_kafkas_java_client(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed % 2**32
