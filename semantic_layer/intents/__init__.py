"""What kind of request a text is, and what that means for the caches."""
