"""Analysis of recorded runs: metrics with intervals, comparison, rescoring and replay."""
