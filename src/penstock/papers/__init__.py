"""Papers that are run again: their tables, pictures and findings, with seeds.

::

    harness     what is the same for all: begin or resume, run, judge, write down, publish
    running     their runs, in processes or one by one; what is finished is kept
    judging     findings and verdicts
    document    Markdown and HTML
    pictures    axes in one style

A package for each paper holds what is its own: ``published`` (what the paper reports), cells or
set-ups, ``experiment`` (how one is run), ``findings``, and ``paper``, which hands these to the
harness and has the tables and pictures that nothing else needs; others are in ``tables`` and
``figures``. Two of them exist twice, ``simulated`` and on real ``spark``.
"""
