"""Commands for settings, permissions, servers, workspaces and bundles."""
