"""Gesscale and its kin: sizes and nodes by a model of throughput. [arkian21]"""
