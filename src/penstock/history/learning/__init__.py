"""Profiles from recordings: what an application did, whoever wrote it down.

``learn`` the profile, the demand and what could not be learnt · ``batches`` those that are fitted ·
``streams`` sources and their demand · ``executors`` over time · ``told`` triggers and limits that
nobody wrote down · ``durations`` stages for batches of which only the duration is known ·
``notes`` what could not be learnt.
"""
