"""Packages in whole models: the table of architectures. `python -m benchmarks.deployment`."""
