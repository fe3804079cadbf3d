"""Commands for the index: build, embed, watch, check, compact, snapshots, models."""
