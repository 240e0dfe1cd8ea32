"""Virtual time over the same core that runs live:

Jobs arrive, are planned, run and end, and nothing waits for a clock.
"""
