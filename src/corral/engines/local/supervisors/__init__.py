"""The processes that run instances: the spawner forks one supervisor for each instance."""
