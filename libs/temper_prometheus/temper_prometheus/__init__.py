"""A small client of the HTTP API of Prometheus, Thanos and Mimir.

It is imported module by module, so that a process pays only for the parts it uses.
"""
