"""What the benchmark's worker runs."""
