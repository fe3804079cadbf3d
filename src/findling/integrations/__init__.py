"""Adapters that make a workspace a retriever of other libraries; each needs the extra of its name."""
