"""Benchmarks of the simulator and the validation of its timing model."""
