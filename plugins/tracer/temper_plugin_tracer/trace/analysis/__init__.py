"""What a trace says about waiting: who ran, who waited, and who ran while another waited.

Everything here is pure: it takes blocks of ``SCHED_EVENT`` and returns records.
"""
