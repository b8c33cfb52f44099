"""What the machine needs before an engine starts. Each check has its remedy."""
