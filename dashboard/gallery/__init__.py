"""The pages of the gallery."""
