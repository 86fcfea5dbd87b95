"""What recorded runs say: metrics with intervals, comparisons, rescoring and replay."""
