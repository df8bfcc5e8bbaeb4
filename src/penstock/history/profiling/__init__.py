"""Profiles for the micro-batch simulator, made of what was observed of a query; pure.

``experiment`` what was observed · ``lineup`` batches with their stages side by side · ``lines``
robust fits · ``fit_stages``, ``fit_states``, ``fit_driver``, ``fit_executors`` one part of a
profile each · ``fit`` all of it.
"""
