"""What `headrace tail` is made of: which snapshots to show (`since`, `fold`), and how (`table`, `json_line`)."""
