"""Access to the Kubernetes API: kubeconfig, credentials, requests, watches, and the objects that the engine reads."""
