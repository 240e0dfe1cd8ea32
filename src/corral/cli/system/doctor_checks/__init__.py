"""Checks of `corral doctor`: each is one small function that returns a finding, and never raises."""
