"""Bundles, browser pages, evaluation and federated search."""
