"""People's own programs on a simulated GPU: running them, and what they did."""
