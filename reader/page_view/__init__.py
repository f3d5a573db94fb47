"""What a person sees on a page: its visible characters, as lines, and its pixels."""
