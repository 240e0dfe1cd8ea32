"""Settings: the only reader of the configuration file and of the environment."""
