"""Job types of the tests, one file each."""
