"""Profiles for the micro-batch simulator, measured on real runs: ``fit`` is pure, ``measure`` runs.

``experiment`` what was observed · ``lineup`` batches with their stages side by side · ``lines``
robust fits · ``stages``, ``states``, ``driver``, ``executors`` one part of a profile each.
"""
