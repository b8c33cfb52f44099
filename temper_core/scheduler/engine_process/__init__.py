"""One engine as a child process: start, proof of attachment, gate, stop."""
