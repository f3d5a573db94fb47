"""The runtime crashes at every point of its work, and loses nothing and does nothing twice."""
