"""What a data plane sees for itself between two snapshots, and what it does about it: one guard a file.

    what an attempt met ─► errors, first_token (CUSUM) ─► ejection (for a time, at most a share of the weight) ─► panic
                        ─► throttle (an engine that says no is asked less)
    attempts under way  ─► in_flight (an engine above its share lets sessions go)

A guard judges; `headrace.dataplane.avoidance` puts the judgements of one route together, and the router acts on them.
All of them are folds over immutable values with the time as an argument. None of them ever adds an engine to a route.
"""
