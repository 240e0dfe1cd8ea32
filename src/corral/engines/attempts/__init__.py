"""What all engines share about attempts: accounts, environment, instance specifications, ends and terms."""
