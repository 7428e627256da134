"""The pure core of replay: what history is, in which order it plays, and what a variant makes of it."""
