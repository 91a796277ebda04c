"""For every test: no deadline on a drawn case, since the machines that run them are noisy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("weighlock", settings(), deadline=None)
settings.load_profile("weighlock")
