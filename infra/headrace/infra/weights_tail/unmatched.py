"""What a tail was asked to show and no route of a snapshot has, in a sentence that names what there is."""

from headrace.schemas.weights import Snapshot


def unmatched(snapshot: Snapshot, clusters: tuple[str, ...], models: tuple[str, ...]) -> str | None:
    """Say which clusters and models no route is of, and which there are; None where each has a route.

    A cluster and a model that have routes, but none together, are told too: nothing would ever be shown.
    """
    parts: list[str] = []
    for noun, wanted, here in (
        ("cluster", clusters, {route.cluster for route in snapshot.routes}),
        ("model", models, {route.model for route in snapshot.routes}),
    ):
        missing = [repr(name) for name in wanted if name not in here]
        if missing:
            parts.append(f"no route is of {noun} {', '.join(missing)}; there are {', '.join(sorted(here)) or 'none'}")
    both = [r for r in snapshot.routes if r.cluster in clusters and r.model in models]
    if not parts and clusters and models and not both:
        there = ", ".join(f"{r.cluster} with {r.model}" for r in snapshot.routes)
        parts.append(f"no route is of both; there are {there}")
    return "; ".join(parts) or None
