"""Engines and profiles as operators own them: in a file, and on their two topics."""
