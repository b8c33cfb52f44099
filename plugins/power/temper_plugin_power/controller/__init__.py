"""The operator: writes WorkloadProfiles, and the caps and the state of nodes."""
