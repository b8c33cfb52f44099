"""The use of containers, as histograms that can be merged over time and over pods."""
