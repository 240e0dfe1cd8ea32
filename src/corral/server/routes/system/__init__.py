"""The installation itself: settings, health of parts, search, retention and housekeeping."""
