"""Storage: volumes, buckets, transfers and mounts."""
