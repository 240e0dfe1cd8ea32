"""What could be better: findings with evidence and a proposal, one file each."""
