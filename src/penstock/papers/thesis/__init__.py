"""``penstock reproduce thesis``: the thesis's tables, pictures and findings, with seeds. [kanis23]

::

    published   what the thesis reports
    cells       the same experiments as cells of a bench
    experiment  what is run, and everything that is made of it
    tables      ours beside the thesis's; convergence: Table 7.19
    accuracy    how far ours are from the thesis's
    findings    what the thesis concludes, judged on our figures; mechanisms: why it is so
    improved    the improved auto-scalers against their originals
    figures     the pictures
    extended    what the thesis leaves for the future, and its tables
    paper       hands these to the harness; docs/results/thesis.md, the page and the JSON
"""
