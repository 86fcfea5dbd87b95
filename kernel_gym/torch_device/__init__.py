"""A `cuda` device for PyTorch on machines without a GPU: memory and policy are its owner's."""
