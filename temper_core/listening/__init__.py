"""Listening for changes of files and directories; knows nothing of ours."""
