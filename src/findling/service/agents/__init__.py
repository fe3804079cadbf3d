"""Settings of coding agents: entries for the MCP server, instructions, and what answers save."""
