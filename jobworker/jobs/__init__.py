"""What long jobs do: one file per type, found through dispatch.py."""
