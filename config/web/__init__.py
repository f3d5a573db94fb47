"""The web server: Daphne, with bounds on what a stranger can make it hold."""
