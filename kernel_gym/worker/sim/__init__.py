"""The worker on a simulated GPU: PyTorch and Triton calls become device requests."""
