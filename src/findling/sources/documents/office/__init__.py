"""PDF, OOXML, OpenDocument and spreadsheets."""
