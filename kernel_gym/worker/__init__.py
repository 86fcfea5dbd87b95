"""The code of the untrusted child: loads the candidate and calls it, and knows nothing else.

No oracle, tolerance, seed, unseen workload, counter or time exists in this process.
"""
