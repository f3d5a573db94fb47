"""The Django project: settings, addresses, servers and the supervisor."""
