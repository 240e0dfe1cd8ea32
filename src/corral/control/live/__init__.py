"""The live system: the controller, its turns, the outbox and reconciliation with the engines."""
