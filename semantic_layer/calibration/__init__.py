"""Thresholds out of labels, with bounds that hold. Knows no store's client and no model."""
