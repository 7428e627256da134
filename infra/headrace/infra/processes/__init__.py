"""Processes of ours on one host: started, watched, told to stop; and where they listen."""
