"""Measurements.

Each module measures one thing and prints a table; nothing here asserts, and nothing is part of the tests.
"""
