"""Bundles and browser pages."""
