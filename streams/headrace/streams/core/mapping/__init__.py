"""Points and documents -> readings of an engine's fields: who it is, which field it is, in which unit. Configured.

A mapping is strict YAML, perhaps on top of a preset; `mapping.parse` makes a frozen value of it or says everything
that is wrong at once; `mapping.apply` is a pure function of (points, mapping).
"""
