"""The recorder: runs a candidate's host code on tensors without data and writes its launch plan."""
