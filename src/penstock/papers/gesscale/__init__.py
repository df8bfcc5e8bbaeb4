"""The evaluation of Gesscale. [arkian21]"""
