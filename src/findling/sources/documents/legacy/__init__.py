"""Word 97, PowerPoint 97 and RTF."""
