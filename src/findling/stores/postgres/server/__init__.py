"""The server as every part uses it: places, connections, errors, arrays, migrations."""
