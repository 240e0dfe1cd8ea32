"""A typed HTTP client for corral's API. Programs and the CLI reach a server through `corral.client.client.Client`."""
