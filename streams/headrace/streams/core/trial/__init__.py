"""Trying a mapping on records, and proposing one: the pure half of `headrace map test` and `headrace map init`."""
