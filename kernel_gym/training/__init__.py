"""Policies, rollouts and the evaluation of a policy."""
