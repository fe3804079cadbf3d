"""Chats as other programs export them: one module a format, each giving threads of messages."""
