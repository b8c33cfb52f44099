"""What containers use, as histograms that can be merged over time and over pods."""
