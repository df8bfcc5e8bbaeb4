"""Settings for all tests."""

from __future__ import annotations

import signal

from hypothesis import settings

# No deadline: machines are noisy. A fixed seed: a red run can be repeated.
settings.register_profile("penstock", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("penstock")

# Where the tests were begun in the background of a shell, Ctrl-C is ignored, and so it would be by
# the commands that they interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
