"""How a configuration is read: file, variables and flags into one checked whole, and back into text."""
