"""Launch plans: the work of one call of a candidate as data, without any code of the host.

A plan lists buffers, the launches in their order with all arguments, fills, copies, constants and
outputs. A recorder makes it in the candidate's process, on tensors without data. A launcher, which
is trusted, executes it. Nothing here needs PyTorch, so that a launcher may do without it.
"""
