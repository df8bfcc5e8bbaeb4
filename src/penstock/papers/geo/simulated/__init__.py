"""The study of stream processing on nodes that are far apart, in the geo simulator. [arsalane24]"""
