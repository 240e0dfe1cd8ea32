"""What jobs mount on the local engine's nodes: volumes as directories, the node's own disk, buckets, datasets."""
