"""Pins that ask for more of a route than there is: sum of the least shares of its engines' pins > 100 %."""

from collections.abc import Iterable, Iterator, Mapping

from headrace.schemas.weights import PPM
from headrace.solver.core.problem import Engine, Pin, Row
from headrace.solver.core.program.eligibility import row_exclusion


def over_asked(
    rows: Iterable[Row], engines: Mapping[str, Engine], pins: Iterable[Pin]
) -> Iterator[tuple[Row, list[Pin]]]:
    """Give each row whose pins cannot all be kept, with those pins.

    A pin counts where the row may use its engine once that is there: one that is out will be back.
    """
    asking = [pin for pin in pins if pin.least > 0.0 and pin.engine_id in engines]
    for row in rows:
        own = (pin for pin in asking if pin.cluster == row.route.cluster)
        able = [pin for pin in own if row_exclusion(row, engines[pin.engine_id]) is None]
        if sum(round(pin.least * PPM) for pin in able) > PPM:
            yield row, able


def sum_words(pins: Iterable[Pin]) -> tuple[str, str]:
    """Say what pins ask for at least, in all and one by one: `("140", "70 % to e1 + 70 % to e2")`."""
    least = [(pin.engine_id, round(pin.least * PPM)) for pin in pins]
    each = " + ".join(f"{100 * ppm / PPM:g} % to {engine_id}" for engine_id, ppm in least)
    return f"{100 * sum(ppm for _, ppm in least) / PPM:g}", each
