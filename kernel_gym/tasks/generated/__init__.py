"""Generated problems: a chain of fused operators for every seed."""
