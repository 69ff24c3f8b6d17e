"""A result in words, tables and pages."""
