"""How hard property tests search: few examples in the everyday run, many with HYPOTHESIS_PROFILE=thorough."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile("default", max_examples=30, deadline=None, suppress_health_check=SLOW_IS_FINE)
settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
