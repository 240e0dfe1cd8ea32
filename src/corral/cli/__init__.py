"""The command line. One file per command group; `main` puts them together."""
