"""One scheduling cycle: the scheduler, the rules that hold jobs, and the plan with its check."""
