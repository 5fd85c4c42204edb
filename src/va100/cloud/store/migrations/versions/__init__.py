"""Migrations, oldest first by their revisions."""
