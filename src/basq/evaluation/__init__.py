"""Calls of the user's likelihood."""
