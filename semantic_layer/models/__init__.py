"""The models that place and compare texts: embedders, verifiers, the score."""
