"""Reinforcement-learning environments for GPU-kernel optimisation on AMD GPUs."""
