"""The daemon: one process that keeps indexes and models ready, and all that is reached through it."""
