"""The cluster as corral sees it: nodes, what other pods hold, drains, and the health of its daemons."""
