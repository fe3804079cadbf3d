"""Items, chats, memories and the glossary of one workspace."""
