"""Alerts: signals, rules, silences, channels and notices."""
