"""Events: the stream, its followers, the audit log as a file, and who may see which event."""
