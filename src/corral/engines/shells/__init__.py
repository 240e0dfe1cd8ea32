"""Commands beside the programs of jobs, started by processes of this machine."""
