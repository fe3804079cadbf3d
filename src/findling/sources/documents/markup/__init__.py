"""HTML, XML and EPUB."""
