"""The storage that jobs mount: volumes as directories, the node's own disk, buckets, datasets."""
