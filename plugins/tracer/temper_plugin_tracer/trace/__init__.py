"""Traces of the kernel's scheduler: what a trace holds, its file formats, and its analysis.

Nothing here is imported by the agent's process, since numpy is large.
"""
