"""``python -m tests.kept.make_folder``: make the data folder of this release, to be checked in.

Each release that raises the schema makes one, and the tests upgrade those of all releases.
"""

import os
import tempfile
from pathlib import Path


def main() -> None:
    """Make a folder from nothing, with keys and names of its own, and pack it."""
    with tempfile.TemporaryDirectory(prefix="kept-") as name:
        os.environ["NANOVM_DATA"] = name
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
        for led_by in ("DATABASE_URL", "REDIS_URL", "STRIPE_API_BASE", "STRIPE_SECRET_KEY"):
            os.environ.pop(led_by, None)
        import django

        django.setup()
        from tests.kept import story
        from tests.kept.folder import pack

        folder = Path(name)
        kept = story.told(folder)
        story.check_portable(folder)
        print(f"{pack(folder, kept)}")


if __name__ == "__main__":
    main()
