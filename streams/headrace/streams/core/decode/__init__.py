"""Foreign telemetry -> points in one normal form: one file per carrier, found by its name.

    raw record ─► edge ─► CloudEvents unwrapped ─► decode/<carrier>.py ─► points, documents, signals, rejects

Nothing here has memory but `families`, whose pending samples are a value that its caller keeps.
"""
