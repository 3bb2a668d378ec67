"""Job types of the benchmark."""
