"""Foreign records -> canonical signals, without memory: decoded, mapped, re-keyed, packed, each reading with its place.

record ─► decode ─► samples of histograms as parts ─► map ─► readings by engine or route ─► packs ─► signals
"""
