"""What the commands have in common: how they are found, what they read and write, and the schemas of their JSON."""
