"""The pages, by what they are about."""
