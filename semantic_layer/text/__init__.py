"""What one text says: words, numbers, language. Pure."""
