"""What a bridge counts is what its report says, and adds up over reports."""

from headrace.infra.metrics import Meter
from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.streams.bridge.metrics import TABLE, count_tally
from headrace.streams.bridge.tally import Tally
from headrace.streams.core.canonical.translator import Translated


def test_a_period_is_counted_by_kind_and_reason_and_periods_add_up() -> None:
    meter, rejected = Meter("bridge", TABLE), Rejected(RejectReason.MALFORMED, "no OTLP")
    for _ in range(2):
        tally = Tally()
        tally.add(Translated((), (), (rejected, rejected), 7, {"other_name": 3}, {"engine-a": 2}))
        tally.letters, tally.published = 1, 4
        count_tally(meter, tally)

    def value(name: str, **labels: str) -> float | None:
        return meter.registry.get_sample_value(f"headrace_bridge_{name}", labels)

    assert [value(f"{name}_total") for name in ("records", "points", "signals", "dead_letters")] == [2, 14, 8, 2]
    assert (value("unmatched_total"), value("folded_total")) == (6, 4)
    assert value("rejects_total", reason="MALFORMED") == 4
