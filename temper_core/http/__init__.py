"""An HTTP server whose connections nobody can take up. Knows nothing of ours."""
