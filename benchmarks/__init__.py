"""Measures the project itself: figures, tables, validation of the simulator, suites of others.

It belongs to a checkout and is in no wheel. `python -m benchmarks --help` lists its commands.
"""
