"""The lower convex hull of points: the nearest convex curve that no point lies below.

Source: Andrew, "Another efficient algorithm for convex hulls in two dimensions" (1979), its lower half.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def lower_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Give the corners of the lower convex hull of points sorted by x; of equal x the lowest counts."""
    hull: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        if hull and hull[-1][0] == point[0]:
            if hull[-1][1] <= point[1]:
                continue
            hull.pop()
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return np.array([p[0] for p in hull]), np.array([p[1] for p in hull])


def _turns_down(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Say whether b lies on or above the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])
