"""GPUs that drivers publish by Dynamic Resource Allocation (DRA, `resource.k8s.io/v1`), and the claims for them."""
