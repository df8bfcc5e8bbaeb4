"""``penstock reproduce thesis``: the thesis's tables, pictures and findings, with seeds. [kanis23]

::

    paper       what was published
    cells       the same experiments as cells of a bench
    tables      ours beside the paper's
    accuracy    how far ours are from the paper's
    findings    what the thesis concludes, judged on our figures
    improved    the improved auto-scalers against their originals
    figures     the pictures
    extended    what the thesis leaves for the future
    page        all of it as one HTML page
    document    all of it as docs/results/thesis.md
    command     what is run, in which order, into which folder
"""
