"""Results of trainings: their document, and the newest ones, which an agent keeps and serves."""
