"""The report: one self-contained HTML file that shows a run."""

from kernel_gym.report.figures import Measures
from kernel_gym.report.page import write_report

__all__ = ["Measures", "write_report"]
