"""Program and policy files: read strictly, checked whole, each fault with its place."""
