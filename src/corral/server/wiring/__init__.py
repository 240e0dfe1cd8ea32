"""The server process: its parts made from settings, started, and stopped in the right order."""
