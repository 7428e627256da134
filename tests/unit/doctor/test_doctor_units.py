"""What is a wrong unit, and what is a slow engine."""

import pytest

from headrace.infra.doctor.core.checks.units import unit_factor


@pytest.mark.parametrize(
    ("value", "factor"),
    [
        (0.2, None),
        (7.05541, None),  # a queue: a hundred times what an idle engine takes
        (16.0, 1e3),
        (56.0, 1e3),
        (60_000.0, 1e6),
        (0.00005, 1e-3),
        (0.001, None),
    ],
)
def test_only_what_is_off_by_a_factor_of_units_is_a_wrong_unit(value: float, factor: float | None) -> None:
    assert unit_factor(value, 0.0301, 0.0559) == factor
