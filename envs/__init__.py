"""Gymnasium environments over the evaluator."""
