"""Makes problems of a user's PyTorch code. The code runs in a confined process only."""
