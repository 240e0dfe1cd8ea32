"""What all engines share about attempts: accounts, environment, messages for instances, claims, ends and terms."""
