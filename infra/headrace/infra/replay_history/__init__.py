"""What the commands of `headrace replay` share: which history, under which mapping, and which variants of it."""
