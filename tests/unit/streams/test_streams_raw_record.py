"""A record of aiokafka's as one of ours: whatever its headers hold, it is decoded or dead-lettered."""

from typing import Any

from aiokafka import ConsumerRecord

from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.signals import EngineSignals
from headrace.streams.fold_task import raw_record


def test_a_header_without_a_value_has_no_bytes_and_the_record_is_refused_for_its_value_alone() -> None:
    headers: Any = (("__value_schema_id", None), ("a", b"x"))
    record = raw_record(ConsumerRecord("signals", 2, 7, 5000, 0, b"k", b"junk", None, 1, 4, headers))
    assert record.headers == (("__value_schema_id", b""), ("a", b"x"))
    assert isinstance(decode(EngineSignals, record.value, record.headers), Rejected)
