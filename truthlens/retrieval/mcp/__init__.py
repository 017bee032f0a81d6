"""Call tools of servers that speak the Model Context Protocol (MCP); the extra ``mcp`` brings its SDK."""
