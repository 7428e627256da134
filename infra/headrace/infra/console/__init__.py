"""The console: one page over the topics, read-only. Nothing here is needed for routing.

topics ─► follower (a thread) ─► desk (what is held, bounded) ─► core (pure: pictures of snapshots) ─► JSON ─► page
"""
