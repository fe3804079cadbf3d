"""Text out of documents, by format."""
