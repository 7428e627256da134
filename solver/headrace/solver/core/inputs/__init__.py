"""Records of the state topics to a problem."""
