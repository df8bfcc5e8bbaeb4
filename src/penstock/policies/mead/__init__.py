"""MEAD and its kin: the least CPU that keeps a response time under bursts. [russo21]"""
