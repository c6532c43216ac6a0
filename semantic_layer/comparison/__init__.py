"""What two texts differ in, and whether that may change the answer. Pure."""
