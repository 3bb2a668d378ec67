"""Handlers of the tests' own timetable."""
