"""Conformance suites: subclass one in a test, and pytest collects it."""
