"""The worker's small parts, without a broker: batches, delivery, the fleet, credentials, events, progress."""

import asyncio
import ssl
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import MessageSizeTooLargeError
from faust import auth
from faust.exceptions import ProducerSendError

from headrace.schemas.bus.security import Sasl, Security, Tls, read_security
from headrace.schemas.codec import encode
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.fleet import EngineSpec
from headrace.schemas.raw import RawRecord
from headrace.streams.batches import Batches
from headrace.streams.continuity import Continuity, SignalsLostError
from headrace.streams.core.keyed import Folded
from headrace.streams.core.window import Outcome
from headrace.streams.credentials import faust_credentials, ssl_context
from headrace.streams.delivery import Outgoing, deliver
from headrace.streams.fleet_watch import FleetWatch
from headrace.streams.fold_task import raw_record
from headrace.streams.log_offsets import NoAnswerError
from headrace.streams.progress import Progress
from headrace.streams.watchdog import Watchdog


class Said:
    """A log that keeps what it was told."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def debug(self, event: str, **_: object) -> None:
        self.events.append(event)

    info = warning = error = debug


def test_a_batch_is_what_came_within_the_wait_in_order() -> None:
    async def run() -> list[list[int]]:
        batches: Batches[int] = Batches(limit=10)
        await batches.add([0])
        await batches.add([1, 2])
        first = await batches.take(0.01, 1.0)
        return [first, await batches.take(0.01, 0.001)]

    assert asyncio.run(run()) == [[0, 1, 2], []]


def test_a_full_batch_is_taken_at_once_and_the_producer_waits_for_room() -> None:
    async def run() -> tuple[list[int], bool, list[int]]:
        batches: Batches[int] = Batches(limit=2)

        producing = asyncio.create_task(batches.add(range(4)))
        first = await batches.take(30.0, 1.0)
        waited = not producing.done()
        return first, waited, await batches.take(30.0, 1.0)

    assert asyncio.run(asyncio.wait_for(run(), 5)) == ([0, 1], True, [2, 3])


class FlakyProducer:
    """Refuses the first send of each key and loses the second; the third arrives."""

    def __init__(self) -> None:
        self.tries: dict[bytes, int] = {}
        self.arrived: list[tuple[str, bytes, bytes | None, int | None]] = []

    async def send(
        self, topic: str, key: bytes, value: bytes | None, partition: int | None, *_: object
    ) -> "asyncio.Future[None]":
        self.tries[key] = self.tries.get(key, 0) + 1
        if self.tries[key] == 1:
            raise ProducerSendError("queue is full")
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.tries[key] == 2:
            answer.set_exception(TimeoutError("no answer"))
        else:
            self.arrived.append((topic, key, value, partition))
            answer.set_result(None)
        return answer


def test_what_was_not_delivered_is_sent_again_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.streams.delivery.RETRY_S", 0.0)
    producer: Any = FlakyProducer()
    said = Said()
    records = [Outgoing("t", 1, b"a", b"1"), Outgoing("t", 0, b"b", None)]
    asyncio.run(deliver(producer, records, said))
    assert producer.arrived == [("t", b"a", b"1", 1), ("t", b"b", None, 0)]
    assert said.events == ["records not delivered, sending again"] * 2


class SmallProducer(FlakyProducer):
    """Takes values of at most three bytes: larger ones are refused at once by the client, or later by the broker."""

    async def send(self, topic: str, key: bytes, value: bytes | None, partition: int | None, *_: object) -> Any:  # noqa: ANN401 - a future
        self.tries[key] = 2
        if value is not None and len(value) > 5:
            raise ProducerSendError("Error while sending") from MessageSizeTooLargeError()
        answer = await super().send(topic, key, value, partition)
        if value is not None and len(value) > 3:
            answer = asyncio.get_running_loop().create_future()
            answer.set_exception(MessageSizeTooLargeError())
        return answer


def test_what_is_too_large_is_given_up_and_said_and_the_rest_is_delivered() -> None:
    producer: Any = SmallProducer()
    said = Said()
    records = [Outgoing("t", 0, b"a", b"123456"), Outgoing("t", 0, b"b", b"1234"), Outgoing("t", 0, b"c", b"1")]
    asyncio.run(asyncio.wait_for(deliver(producer, records, said), 5))
    assert said.events == ["record is larger than its topic takes: given up"] * 2
    assert ("t", b"c", b"1", 0) in producer.arrived


def spec(engine: str, value: bytes | str | None = "", key: bytes | None = None) -> RawRecord:
    encoded = encode(EngineSpec(engine, "s", ("m",), (), (), "p", None, None, drain=False))
    own = engine.encode() if key is None else key
    return RawRecord("fleet", 0, 0, 0, own, encoded if isinstance(value, str) else value)


def test_the_fleet_is_its_newest_records_and_a_tombstone_takes_an_engine_out() -> None:
    said = Said()
    reader: Any = None
    watch = FleetWatch(reader, said)
    watch.take(spec("a"))
    watch.take(spec("b"))
    watch.take(spec("a"))
    assert (b"a" in watch, b"b" in watch, len(watch), watch.version) == (True, True, 2, 2)
    watch.take(spec("a", None))
    watch.take(spec("a", None))
    assert (b"a" in watch, watch.version) == (False, 3)


def test_a_fleet_record_that_cannot_be_used_changes_nothing_and_is_said() -> None:
    said = Said()
    reader: Any = None
    watch = FleetWatch(reader, said)
    watch.take(spec("a", b"junk"))
    watch.take(spec("a", key=b"other"))
    watch.take(RawRecord("fleet", 0, 0, 0, None, b"x"))
    assert (len(watch), watch.version) == (0, 0)
    assert said.events == ["unreadable fleet record", "fleet record under another key"]


def test_no_security_needs_no_credentials() -> None:
    assert faust_credentials(Security()) is None


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password_login_is_translated(mechanism: str) -> None:
    options = {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.username": "u", "sasl.password": "p",
    }  # fmt: skip
    found = faust_credentials(read_security(options))
    assert isinstance(found, auth.SASLCredentials)
    assert (found.username, found.password, found.mechanism.value, found.protocol.value) == (
        "u", "p", mechanism, "SASL_PLAINTEXT",
    )  # fmt: skip


def test_encryption_alone_and_with_a_login_verifies_the_host() -> None:
    alone = faust_credentials(Security("SSL", tls=Tls()))
    assert isinstance(alone, auth.SSLCredentials)
    assert (alone.context.check_hostname, alone.context.verify_mode) == (True, ssl.CERT_REQUIRED)
    both = faust_credentials(Security("SASL_SSL", Sasl("PLAIN", "u", "p"), Tls()))
    assert both is not None
    assert both.protocol.value == "SASL_SSL"


def test_kerberos_is_translated_and_a_token_callback_cannot_be() -> None:
    kerberos = faust_credentials(Security("SASL_PLAINTEXT", Sasl("GSSAPI", kerberos_service="k")))
    assert isinstance(kerberos, auth.GSSAPICredentials)
    assert kerberos.kerberos_service_name == "k"
    with pytest.raises(InvalidInputError, match="OAUTHBEARER"):
        faust_credentials(Security("SASL_SSL", Sasl("OAUTHBEARER"), Tls()))


def test_verification_is_switched_off_only_when_asked() -> None:
    unchecked = ssl_context(Tls(verify_certificate=False))
    assert (unchecked.check_hostname, unchecked.verify_mode) == (False, ssl.CERT_NONE)
    assert ssl_context(Tls(verify_hostname=False)).verify_mode is ssl.CERT_REQUIRED


def test_a_certificate_without_sense_is_an_error_of_the_start() -> None:
    with pytest.raises(ssl.SSLError):
        ssl_context(Tls(certificate_pem="no certificate", key_pem="no key"))


def test_a_record_of_the_client_becomes_the_record_that_lay_in_the_log() -> None:
    record = SimpleNamespace(
        topic="t", partition=3, offset=9, timestamp=1_764_481_234_567, key=b"k", value=None, headers=(("h", b"1"),)
    )
    assert raw_record(record) == RawRecord("t", 3, 9, 1_764_481_234_567, b"k", None, (("h", b"1"),))


def test_progress_counts_what_was_acknowledged() -> None:
    progress = Progress()
    outcomes = dict.fromkeys(Outcome, 0) | {Outcome.APPLIED: 2, Outcome.DUPLICATE: 1}
    progress.processed("t", {0: 6, 1: 1}, Folded({}, (), outcomes))
    assert progress.next_offsets == {("t", 0): 6, ("t", 1): 1}
    assert progress.counts() == {"applied": 2, "late": 0, "duplicate": 1, "kept_apart": 0, "refused": 0}
    progress.forget([("t", 0), ("t", 7)])
    assert progress.next_offsets == {("t", 1): 1}


class KnownLog:
    """A log that holds the offsets it is given."""

    def __init__(self, offsets: list[int]) -> None:
        self._offsets = offsets

    def first_from(self, _: tuple[str, int], offset: int) -> int | None:
        return next((found for found in self._offsets if found >= offset), None)


PLACE = ("t", 0)


def check(start: int, in_log: list[int], *batches: list[int]) -> None:
    async def run() -> None:
        log: Any = KnownLog(in_log)
        continuity = Continuity(log)
        continuity.begin({PLACE: start})
        for batch in batches:
            await continuity.check((PLACE, offset) for offset in batch)

    asyncio.run(run())


def test_offsets_that_follow_one_another_from_the_start_pass_and_so_do_duplicates() -> None:
    check(5, [], [5, 6, 7], [6, 7, 8], [9])


def test_a_skipped_signal_that_is_in_the_log_stops_the_fold_first_or_later() -> None:
    with pytest.raises(SignalsLostError, match=r"t\[0\]: 7 came; expected 5"):
        check(5, [5, 6, 7], [7])
    with pytest.raises(SignalsLostError, match="9 came; expected 7"):
        check(5, [5, 6, 7, 8, 9], [5, 6], [9])


def test_offsets_that_the_log_does_not_hold_are_no_loss() -> None:
    check(5, [9, 10], [9, 10])
    check(0, [0, 1, 4], [0, 1, 4])


def test_a_signal_before_the_recovery_stops_the_fold_at_the_start_and_after_a_revocation() -> None:
    async def run() -> None:
        log: Any = KnownLog([5])
        continuity = Continuity(log)
        with pytest.raises(SignalsLostError, match="before the tables were recovered"):
            await continuity.check([(PLACE, 5)])
        continuity.begin({PLACE: 5})
        await continuity.check([(PLACE, 5)])
        continuity.interrupt()
        with pytest.raises(SignalsLostError):
            await continuity.check([(PLACE, 6)])

    asyncio.run(run())


def test_where_the_committed_log_ends_before_a_record_nothing_was_lost() -> None:
    check(5, [], [7])


def test_a_log_that_does_not_answer_is_not_taken_for_a_gap() -> None:
    class Silent(KnownLog):
        def first_from(self, place: tuple[str, int], offset: int) -> int | None:
            raise NoAnswerError(f"{place}: {offset}")

    async def run() -> None:
        log: Any = Silent([])
        continuity = Continuity(log)
        continuity.begin({PLACE: 5})
        with pytest.raises(NoAnswerError):
            await continuity.check([(PLACE, 7)])

    asyncio.run(run())


class EndedLog(KnownLog):
    """A log that is committed up to 5 and whose high watermark is 9, whatever records are in it."""

    def committed(self, places: tuple[tuple[str, int], ...]) -> dict[tuple[str, int], int]:
        return dict.fromkeys(places, 5)

    def bounds(self, _: tuple[str, int]) -> tuple[int, int]:
        return 0, 9


@pytest.mark.parametrize(("in_log", "stalled"), [([], False), ([8], True), ([3], False)])
def test_only_a_committed_record_beyond_the_position_is_a_stall(in_log: list[int], stalled: bool) -> None:  # noqa: FBT001 - a case
    log: Any = EndedLog(in_log)
    progress = Progress()
    watchdog = Watchdog(log, 0, progress)
    assert asyncio.run(watchdog.is_stalled([PLACE])) is stalled
