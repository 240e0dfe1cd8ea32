"""Python functions as jobs: calls, arrays of calls, and an executor of futures."""
