"""Dead letters for people: which to show, as a line of a table and as a line of JSON."""
