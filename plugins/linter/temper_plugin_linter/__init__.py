"""The placement invariants every Temper node is held against."""
