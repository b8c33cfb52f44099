"""Decisions from pods to the next plan: detectors, tiers, profiles, and when a change is due."""
