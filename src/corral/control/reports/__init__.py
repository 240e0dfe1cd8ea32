"""Reports and analysis."""
