"""The log of a process: how its lines look, what libraries say in it, and its settings."""
