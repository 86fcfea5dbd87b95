"""Agents that write kernels: workspaces, their desk, MCP, and playing command-line agents."""
