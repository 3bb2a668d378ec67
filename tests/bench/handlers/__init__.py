"""What the comparison runs."""
