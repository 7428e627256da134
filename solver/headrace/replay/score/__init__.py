"""Played ticks -> how users would have fared: expected latencies, shed, moved traffic, each with its uncertainty.

    scorer = VariantScorer("lp", settings, facts)        one a variant; may live in a process of its own
    for tick in ticks: scorer.add(tick)                  streaming; memory does not grow with the length of the run
    comparison = compare("recorded", [scorer.finish(), ...], settings, measured)

A `VariantScore` is a frozen value that may be pickled. Pure: no clock, no dice but a seeded generator.
"""
