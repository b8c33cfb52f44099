"""What the machine needs before an engine starts; each check has its remedy."""
