"""The parts that all engines share: accounts, environment, messages for instances, claims, ends and terms."""
