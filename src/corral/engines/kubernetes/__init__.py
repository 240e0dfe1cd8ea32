"""The Kubernetes engine: attempts as pods of an existing Kubernetes cluster."""
