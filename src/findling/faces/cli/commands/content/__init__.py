"""Commands for content that is no file: items, chats, memories, the glossary."""
