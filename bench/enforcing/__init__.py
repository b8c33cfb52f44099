"""What the whole agent costs while it enforces and steers, beside one that only observes."""
