"""The history of datasets: versions, trees, records and leases."""
