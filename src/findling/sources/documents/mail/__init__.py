"""Mail: EML, MBOX, MSG."""
