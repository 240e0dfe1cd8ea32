"""Reports for users: HTML, PDF and CSV, made from computed numbers."""
