"""Load tests in files: read in three forms, fitted by the solver's core, told, written as profiles and drawn."""
