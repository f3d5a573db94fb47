"""What every page uses: cookies, headers, idempotent forms, the socket."""
