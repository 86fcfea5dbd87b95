"""Datasets for other trainers: prompts of tasks, judged replies of runs, and their way back."""
