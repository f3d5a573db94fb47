"""Django on a database of a bench's own."""

import os


def migrated(folder: str, **given: str) -> None:
    """Set Django up on this data folder, with these settings; its database is migrated.

    Without others: the application's own settings, SQLite, no queue server.
    """
    own = {"DJANGO_SETTINGS_MODULE": "config.settings", "DATABASE_URL": "", "REDIS_URL": ""}
    os.environ.update({**own, **given, "NANOVM_DATA": folder})
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)
