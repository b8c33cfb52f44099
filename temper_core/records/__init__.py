"""The frozen records that the parts of Temper exchange."""
