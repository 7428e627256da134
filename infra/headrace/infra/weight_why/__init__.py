"""Why an engine has its weight: the explanation of one tick, the protections that acted on it, and its history."""
