"""The same tick solved again with something changed, to see what would happen. It only reads; nothing is published."""
