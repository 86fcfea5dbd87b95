"""`torch.compile` as a second baseline of traced tasks, recorded beside eager PyTorch."""
