"""Builds and loads HIP candidates, for the simulator and for real GPUs."""
