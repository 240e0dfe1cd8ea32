"""Alerts: signals, rules over them, and the life cycle of an alert."""
