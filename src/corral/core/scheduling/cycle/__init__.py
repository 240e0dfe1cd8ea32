"""One scheduling cycle: the walk through the waiting lines, and the decisions about single jobs."""
