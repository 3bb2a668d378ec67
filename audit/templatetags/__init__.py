"""What the templates of every app share."""
