"""The ways of people and programs to the engine."""
