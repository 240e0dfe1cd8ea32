"""Estimated starts: the same scheduler run forward with predicted run times."""
