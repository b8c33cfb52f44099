"""An HTTP server whose connections nobody can take up; knows nothing of ours."""
