"""Topics read by commands, without a group and committing nothing: to the end once, from an instant, the newest few."""
