"""The fleet: clusters, nodes, GPUs, pools, flavors, packages and drains."""
