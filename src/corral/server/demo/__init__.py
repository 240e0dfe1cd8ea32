"""The demo: people, a catalog and jobs that arrive all day, so that every page has something to show."""

from corral.server.demo.arrivals import Demo

__all__ = ["Demo"]
