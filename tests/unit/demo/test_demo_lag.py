"""From a signal to the weights that it had a part in: which installation covers which state record."""

from headrace.infra.demo.lag import LagMeter
from headrace.schemas.weights import InputOffsets


def inputs(*offsets: int) -> tuple[InputOffsets, ...]:
    return (InputOffsets("state.engine", offsets),)


def test_a_state_is_covered_by_the_first_installation_that_had_read_past_it() -> None:
    meter = LagMeter(["a"])
    meter.offer_installation("a", inputs(5), 1_000)
    meter.offer_state("state.engine", 0, 5, 1_100)
    meter.offer_installation("a", inputs(5), 1_500)  # next offset 5: record 5 was not read
    meter.match()
    assert meter.lag_ms == {}
    meter.offer_installation("a", inputs(7), 2_000)
    meter.offer_installation("a", inputs(9), 2_500)
    meter.match()
    assert meter.lag_ms == {900: 1}


def test_a_state_that_is_read_after_its_installation_is_measured_all_the_same() -> None:
    meter = LagMeter(["a"])
    meter.offer_installation("a", inputs(5), 1_000)
    meter.offer_installation("a", inputs(6), 1_500)
    meter.offer_installation("a", inputs(7), 2_000)
    meter.offer_state("state.engine", 0, 5, 1_200)
    meter.offer_state("state.engine", 0, 6, 1_700)
    meter.match()
    assert meter.lag_ms == {300: 2}


def test_signals_from_before_the_first_installation_measure_the_start_and_are_left_out() -> None:
    meter = LagMeter(["a"])
    meter.offer_state("state.engine", 0, 0, 900)
    meter.offer_installation("a", inputs(1), 1_000)
    meter.match()
    assert meter.lag_ms == {}


def test_every_data_plane_and_partition_is_measured_by_itself() -> None:
    meter = LagMeter(["a", "b"])
    for name in ("a", "b"):
        meter.offer_installation(name, inputs(0, 0), 1_000)
    meter.offer_state("state.engine", 0, 0, 1_000)
    meter.offer_state("state.engine", 1, 0, 1_000)
    meter.offer_installation("a", inputs(1, 0), 1_100)
    meter.offer_installation("a", inputs(1, 1), 1_200)
    meter.offer_installation("b", inputs(1, 1), 1_300)
    meter.match()
    assert meter.lag_ms == {100: 1, 200: 1, 300: 2}
