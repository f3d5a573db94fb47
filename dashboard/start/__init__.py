"""The start page, the list of runs, and the form for a new one."""
