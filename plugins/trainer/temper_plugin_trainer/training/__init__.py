"""Training: from the observed threads of a program under load to thread groups."""
