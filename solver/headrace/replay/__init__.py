"""History -> the same code that ran live -> a comparison."""
