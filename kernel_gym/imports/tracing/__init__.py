"""Traces a PyTorch module or function of a user into operators, in a confined process."""
