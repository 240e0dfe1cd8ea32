"""Reports as people read them: HTML, PDF and CSV, made from numbers that others have put together."""
