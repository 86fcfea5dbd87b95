"""Programs that run code of imported suites in a confined process with a simulated GPU.

Their answers go to the import command, which parses them as it does a candidate's.
"""
