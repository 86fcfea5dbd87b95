"""Generated problems: a fused subgraph for every seed."""
