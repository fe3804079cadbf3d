"""Items, chats and memories as resources."""
