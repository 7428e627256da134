"""Cumulative readings -> what happened between two of them, per series and before any aggregation.

    reading ─► level of its series ─► Delta | Baseline | OutOfOrder | Duplicate | Missing ─► signals.histogram layout

The state is a value (`SeriesBook`, packed to bytes) that the fold keeps inside its own, so it is as exact under kill
and replay as the fold is.
"""
