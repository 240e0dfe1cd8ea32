"""The plan of a scheduling cycle: its values, and the check before it is applied."""
