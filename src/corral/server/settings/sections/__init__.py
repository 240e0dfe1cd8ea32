"""The sections of `corral.yaml`: their keys, defaults and ranges.

They decide what a valid configuration is. `settings` decides where values come from and which source wins.
The defaults set no limits: a single user on one machine needs no configuration at all.
"""
