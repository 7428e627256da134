"""Small problems by hand and at random for the solver's tests, and HiGHS as the other opinion."""

import highspy
import numpy as np
from hypothesis import strategies as st

from headrace.schemas.fleet import LatencyProfile
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import Reason
from headrace.solver.core.linear import LinearProgram
from headrace.solver.core.problem import Engine, Exclusion, Problem, Row


def profile(
    profile_id: str = "p",
    knots: tuple[float, ...] = (0.0, 0.5, 1.0),
    ttft_s: tuple[float, ...] = (0.1, 0.1, 0.3),
    tbot_s: tuple[float, ...] = (0.0, 0.0, 0.0),
    tokens: float = 10.0,
    capacity_rps: float = 10.0,
) -> LatencyProfile:
    return LatencyProfile(
        profile_id, "gpu", "m", capacity_rps, tokens, knots, ttft_s, tbot_s, 0.0, 1.0, None, None, "by hand"
    )


def engine(engine_id: str, site: str = "s1", capacity: float = 10.0, **changes: object) -> Engine:
    fields: dict[str, object] = {
        "models": ("m",),
        "capabilities": (),
        "residency": (),
        "address": None,
        "profile_id": "p",
        "ready_replicas": 1,
        "capacity_rps_per_replica": capacity,
    }
    return Engine(engine_id, site, **{**fields, **changes})  # type: ignore[arg-type]


def row(cluster: str, demand: float, model: str = "m", request_class: str = "default", **changes: object) -> Row:
    return Row(RouteKey(cluster, model, request_class), **{"tier": 0, "demand_rps": demand, **changes})  # type: ignore[arg-type]


def problem(
    rows: list[Row],
    engines: list[Engine],
    rtt_ms: dict[tuple[str, str], float | None] | float = 0.0,
    profiles: tuple[LatencyProfile, ...] = (profile(),),
) -> Problem:
    if isinstance(rtt_ms, dict):
        network = {link: None if ms is None else ms / 1000.0 for link, ms in rtt_ms.items()}
    else:
        links = {(r.route.cluster, e.site) for r in rows for e in engines}
        network = dict.fromkeys(sorted(links), rtt_ms / 1000.0)
    return Problem(tuple(rows), tuple(engines), network, {p.profile_id: p for p in profiles})


@st.composite
def profiles_strategy(draw: st.DrawFn, profile_id: str) -> LatencyProfile:
    """Any non-falling curve, convex or not."""
    count = draw(st.integers(2, 5))
    inner = sorted(draw(st.sets(st.integers(1, 99), min_size=count - 2, max_size=count - 2)))
    knots = (0.0, *(k / 100 for k in inner), 1.0)

    def rising(scale: float) -> tuple[float, ...]:
        steps = draw(st.lists(st.integers(0, 50), min_size=len(knots), max_size=len(knots)))
        return tuple(scale * (1 + sum(steps[: i + 1])) for i in range(len(knots)))

    return profile(profile_id, knots, rising(0.01), rising(0.0005), float(draw(st.integers(1, 200))))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Up to 4 clusters, 3 models, 3 sites, 8 engines: some excluded, links unknown, demand from nothing to overload."""
    clusters = [f"c{i}" for i in range(draw(st.integers(1, 4)))]
    models = [f"m{i}" for i in range(draw(st.integers(1, 3)))]
    sites = [f"s{i}" for i in range(draw(st.integers(1, 3)))]
    curves = tuple(draw(profiles_strategy(f"p{i}")) for i in range(draw(st.integers(1, 2))))
    engines = [
        engine(
            f"e{i}",
            draw(st.sampled_from(sites)),
            float(draw(st.sampled_from([0, 1, 5, 10, 37.5, 100]))),
            models=tuple(sorted(draw(st.sets(st.sampled_from(models), min_size=1)))),
            capabilities=draw(st.sampled_from([(), ("vision",)])),
            residency=draw(st.sampled_from([(), ("eu",), ("us",)])),
            profile_id=draw(st.sampled_from([p.profile_id for p in curves])),
            ready_replicas=draw(st.integers(0, 3)),
            factor=draw(st.sampled_from([0.0, 0.3, 1.0, 1.0])),
            exclusion=draw(st.sampled_from([None, None, None, Exclusion(Reason.STALE, "silent for 20 s")])),
        )
        for i in range(draw(st.integers(0, 8)))
    ]
    rows = [
        row(
            c,
            float(draw(st.sampled_from([0, 0.001, 1, 7, 50, 300]))),
            m,
            k,
            tier=t,
            requires=draw(st.sampled_from([(), (), ("vision",)])),
            residency=draw(st.sampled_from([(), (), ("eu",), ("eu", "us")])),
        )
        for c in clusters
        for m in models
        for k, t in (("batch", 1), ("default", 0))
        if draw(st.booleans())
    ]
    links = {
        (c, s): draw(st.sampled_from([0.0, 3.0, 15.5, 64.0, 200.0, None]))
        for c in clusters
        for s in sites
        if draw(st.integers(0, 9)) > 0
    }
    return problem(rows, engines, links, curves)


def coupled_fleet(
    clusters: int,
    engines: int,
    models: int,
    *,
    seed: int,
    utilisation: float = 0.7,
    sites: int = 4,
    shared: float = 0.3,
    scattered: bool = False,
) -> Problem:
    """Engines over sites and models, a share of them serving the next model too; demand unlike by cluster.

    `scattered`: the second model is any other one, drawn for each engine.
    """
    dice = np.random.default_rng(seed)
    knots = tuple(np.linspace(0, 1, 11))
    curves = tuple(
        profile(
            f"p{i}",
            knots,
            tuple(0.05 / (1 - (0.6 + 0.1 * i) * np.array(knots))),
            tuple(0.008 + 0.006 * np.array(knots)),
        )
        for i in range(4)
    )
    fleet: list[Engine] = []
    for i in range(engines):
        model = (i // sites) % models
        served = {model, (model + 1) % models} if dice.random() < shared else {model}
        if scattered and len(served) > 1:
            served = {model, (model + int(dice.integers(1, models))) % models}
        fleet.append(
            engine(
                f"e{i:05}",
                f"s{i % sites}",
                float(dice.uniform(5, 40)),
                models=tuple(sorted(f"m{m}" for m in served)),
                profile_id=f"p{i % 4}",
            )
        )
    each = utilisation * sum(e.capacity_rps for e in fleet) / models
    rows = [
        row(f"c{c}", float(share) * each, f"m{m}")
        for m in range(models)
        for c, share in enumerate(dice.dirichlet(np.full(clusters, 0.7)))
    ]
    links: dict[tuple[str, str], float | None] = {
        (f"c{c}", f"s{s}"): float(dice.uniform(2, 200)) for c in range(clusters) for s in range(sites)
    }
    return problem(rows, fleet, links, curves)


def highs_objective(program: LinearProgram) -> float:
    """The optimum of the same program, by HiGHS."""
    found = highs_within(program, float("inf"))
    assert found is not None
    return found


def highs_within(program: LinearProgram, limit_s: float) -> float | None:
    """The same; None where it takes longer."""
    m, n = program.size
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n, m
    lp.col_cost_ = program.cost
    lp.col_lower_ = program.lower
    lp.col_upper_ = np.where(np.isinf(program.upper), highspy.kHighsInf, program.upper)
    lp.row_lower_ = lp.row_upper_ = program.rhs
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = program.row_start
    lp.a_matrix_.index_ = program.columns
    lp.a_matrix_.value_ = program.coefficients
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)  # noqa: FBT003 - HiGHS' signature
    highs.setOptionValue("time_limit", limit_s)
    highs.passModel(lp)
    highs.run()
    if highs.getModelStatus() == highspy.HighsModelStatus.kTimeLimit:
        return None
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)
