"""The evaluation of Gesscale in a fog of eight nodes, run again. [arkian21]"""
