"""The engine that faces call, its settings and its folders."""
