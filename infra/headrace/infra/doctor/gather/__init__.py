"""Asks the broker, the registry and the mapping files, each within a bound, and gives the picture of it."""
