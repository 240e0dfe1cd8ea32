"""Jobs: submit, life cycle, arrays, dependencies, attempts, logs, checkpoints, tasks, presets and images."""
