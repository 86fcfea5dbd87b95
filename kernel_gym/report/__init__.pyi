# The public names, once: type checkers read this file, and the first use imports from it.
from .figures import Measures as Measures
from .page import write_report as write_report
