"""The experiments of the MEAD paper, in the tuple simulator. [russo21]"""
