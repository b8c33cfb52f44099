"""The commands of the rightsizer."""
