"""The outside world of long jobs: programs, and what they ask of us."""
