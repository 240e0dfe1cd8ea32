"""Monitoring: readings, history, health and usage."""
