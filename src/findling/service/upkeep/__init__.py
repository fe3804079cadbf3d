"""Compaction, checks and snapshots."""
