"""The long runs that ``make soak`` does and ``make test`` leaves out."""
