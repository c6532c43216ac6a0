"""Training and measuring of the semantic decision; run by hand."""
