"""Watch paths for changes by inotify(7)."""
