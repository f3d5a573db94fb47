"""The doors of the gate: HTTP and MCP, each with the same answers."""
