"""What moved between two versions of a route: the weights themselves, not the predictions beside them."""

from dataclasses import dataclass

from headrace.schemas.weights import PPM, RouteWeights, Snapshot


@dataclass(frozen=True, slots=True)
class Moved:
    """Routes whose weights or shedding differ, and those that are gone, by their text keys, sorted."""

    routes: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether anything differs at all."""
        return bool(self.routes or self.removed)


def moved(before: Snapshot | None, after: Snapshot) -> Moved:
    """Give what a data plane would route differently under `after`; everything where there was nothing before."""
    old = {} if before is None else {route.route: route for route in before.routes}
    new = {route.route: route for route in after.routes}
    differs = [str(key) for key, route in new.items() if key not in old or weights_differ(old[key], route)]
    return Moved(tuple(sorted(differs)), tuple(sorted(str(key) for key in old.keys() - new.keys())))


def weights_differ(before: RouteWeights, after: RouteWeights) -> bool:
    """Say whether any engine's weight differs, or the share that is shed by a millionth or more."""
    if round(before.shed_ratio * PPM) != round(after.shed_ratio * PPM):
        return True
    return _shares(before) != _shares(after)


def _shares(route: RouteWeights) -> dict[str, int]:
    return {target.engine_id: target.weight_ppm for target in route.targets if target.weight_ppm}
