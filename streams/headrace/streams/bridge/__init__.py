"""The bridge: a stateless consumer group that reads teams' own topics and publishes them as canonical signals.

    consume ─► translate, pack (streams.core.canonical) ─► publish ─► delivered ─► commit the source's offsets

Everything with memory stays behind it, in the folds: so it may be killed at any instruction, and started anywhere.
"""
