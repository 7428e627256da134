"""The JSON form of a problem, read with every fault at once."""
