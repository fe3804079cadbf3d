"""Bundles: one workspace as plain files."""
