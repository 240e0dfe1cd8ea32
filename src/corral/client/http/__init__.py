"""The connection to a server: requests, retries, event streams, errors and stored tokens."""
