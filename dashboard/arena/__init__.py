"""The arena: a visitor plays the model."""
