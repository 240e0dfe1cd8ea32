"""When to tell somebody: signals, rules over them, and the life of an alert."""
