"""Run times and waits of a trace, and the threads that ran while others waited.

Everything here is pure: it takes blocks of ``SCHED_EVENT`` and returns records.
"""
