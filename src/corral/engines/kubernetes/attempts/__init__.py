"""The attempts of the Kubernetes engine: pods, records, logs and ends."""
