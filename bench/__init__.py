"""Measurements: scripts that print ratios against a named peer, or quality on named collections."""
