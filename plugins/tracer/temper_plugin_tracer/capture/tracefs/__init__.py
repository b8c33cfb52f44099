"""Records by an instance of tracefs of its own, where tracefs is mounted."""
