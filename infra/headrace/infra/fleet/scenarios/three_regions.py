"""A 90 RPS beside an engine of 100, B 120 beside 100, C 40 beside 80: B must send something away, and where is C.

    cluster-a  us-west-2   90 RPS     engine-a  us-west-2  4 x 25 RPS
    cluster-b  us-east-1  120 RPS     engine-b  us-east-1  4 x 25 RPS      us-east-1 <-> us-east-2   15 ms
    cluster-c  us-east-2   40 RPS     engine-c  us-east-2  4 x 20 RPS      us-east-1 <-> us-west-2   64 ms

Latencies are those of Llama-3.1-8B on one H100 under vLLM 0.11 (200 tokens in, 62 out), whose wall was measured at
101.5 RPS. An engine here is four replicas of a quarter of that (a fifth for engine-c), so that one can be taken away:
the same latency at the same share of capacity. No such slice of an H100 was measured; together they are one.
"""

from headrace.infra.fleet.curves import h100_curve
from headrace.infra.fleet.scenario import ClusterSpec, Scenario, engine_setup, profile_of

SCRIPT = """
t=0s   phase warm-up
t=8s   phase surge-b
t=8s   surge cluster-b 1.15
t=16s  surge cluster-b 1
t=16s  phase engine-b-dead
t=16s  kill engine-b
t=36s  phase engine-b-back
t=36s  revive engine-b
t=44s  phase capacity-removed
t=44s  replicas engine-a 3
t=44s  replicas engine-c 3
t=52s  phase restored
t=52s  replicas engine-a 4
t=52s  replicas engine-c 4
"""


def scenario() -> Scenario:
    """Give the scenario; its script takes 60 s."""
    curve = h100_curve()
    return Scenario(
        name="three-regions",
        model=curve.model,
        clusters=(
            ClusterSpec("cluster-a", "us-west-2", 90.0, 0.0),
            ClusterSpec("cluster-b", "us-east-1", 120.0, 1 / 3),
            ClusterSpec("cluster-c", "us-east-2", 40.0, 2 / 3),
        ),
        engines=(
            engine_setup("engine-a", "us-west-2", 4, 25.0, curve),
            engine_setup("engine-b", "us-east-1", 4, 25.0, curve),
            engine_setup("engine-c", "us-east-2", 4, 20.0, curve),
        ),
        profiles=(profile_of(curve, 25.0),),
        mean_tokens=(curve.input_tokens, curve.output_tokens),
        default_script=SCRIPT,
    )
