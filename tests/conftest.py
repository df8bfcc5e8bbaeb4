"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# No deadline: machines are noisy. A fixed seed: a red run can be repeated.
settings.register_profile("penstock", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("penstock")
