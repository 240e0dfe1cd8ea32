"""Background work of the server for users and groups."""
