"""How many cases a property test generates, where the profile's number is not the right one."""

from __future__ import annotations

from hypothesis import settings

#: For tests whose cases are whole histories: a quarter of the cases of others.
DEAR = settings(max_examples=settings().max_examples // 4)
