"""Budgets over time: what is set aside for a request before it is sent, and what it cost, in windows and sessions."""
