"""Whole models with a package's kernel: what is replaced, whether it stays right, its time."""

from kernel_gym.packages.models.deploy import deploy
from kernel_gym.packages.models.report import Deployment

__all__ = ["Deployment", "deploy"]
