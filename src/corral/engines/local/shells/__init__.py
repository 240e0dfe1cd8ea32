"""Commands in running jobs of this machine."""
