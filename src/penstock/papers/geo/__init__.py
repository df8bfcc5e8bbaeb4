"""The study of stream processing on nodes that are far apart. [arsalane24]"""
