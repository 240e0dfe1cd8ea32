"""What the server does for users and groups beside requests."""
