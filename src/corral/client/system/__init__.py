"""The installation: version, parts, licence and search."""
