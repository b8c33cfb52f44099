"""A small client of the Kubernetes API server, on the standard library's HTTP.

It is imported module by module, so that a process pays only for the parts it uses.
"""
