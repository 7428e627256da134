"""One file per sub-command of `headrace`, found by its name; each holds one `command`."""
