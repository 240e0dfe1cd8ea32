"""Several servers over one store: the lease of the leader, and the state of those that stand by."""
