"""The demo: users, a catalog and jobs that arrive all day, so that every page has content."""

from corral.server.demo.arrivals import Demo

__all__ = ["Demo"]
