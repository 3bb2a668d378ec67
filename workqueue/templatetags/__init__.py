"""What templates of apps below ask the queue: `{% load operating %}`."""
