"""What must hold of a data plane's settings beyond the bounds of each: told all at once, before anything is routed."""

from headrace.dataplane.settings import DataPlaneSettings
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.ids import identifier_problem

_IN_ORDER = (
    ("error_tolerated", "error_bad"),
    ("ttft_factor", "ttft_clip"),
    ("in_flight_established", "in_flight_most"),
)
"""Guard settings of which the first must be below the second."""


def check_settings(settings: DataPlaneSettings, cluster: str) -> None:
    """Check them.

    Raises:
        InvalidInputError: a table size is no prime, a name is no identifier, or two settings are in the wrong order.
    """
    names = [("cluster", cluster), ("dataplane.source", settings.source)]
    for model, engines in settings.fallback.items():
        names.append(("dataplane.fallback", model))
        names += [(f"dataplane.fallback[{model}].engine_id", engine.engine_id) for engine in engines]
    problems = [problem for name, value in names if (problem := identifier_problem(name, value)) is not None]
    for name in ("table_size", "large_table_size"):
        size: int = getattr(settings, name)
        if not _is_prime(size):
            problems.append(f"dataplane.{name} is {size}; a prime, such as 16381 or 65537")
    for low, high in _IN_ORDER:
        below, above = getattr(settings.guards, low), getattr(settings.guards, high)
        if not below < above:
            problems.append(f"dataplane.guards.{low} is {below:g}; it must be below {high}, which is {above:g}")
    if problems:
        raise InvalidInputError("data plane", tuple(problems))


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))
