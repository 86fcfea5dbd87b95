"""The report: one HTML file that shows a run and needs nothing else to be read."""

from kernel_gym.report.figures import Measures
from kernel_gym.report.page import render_report, write_report

__all__ = ["Measures", "render_report", "write_report"]
