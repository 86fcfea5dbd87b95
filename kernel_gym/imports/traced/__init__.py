"""Problems that are traced from PyTorch code: a list of operators with free sizes."""
