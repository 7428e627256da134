"""Problem files that ship: `headrace solve NAME` takes one by its name."""
