"""The frozen records that the parts of Temper hand to one another."""
