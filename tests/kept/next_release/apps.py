"""Makes a process the next release's, where its settings name this app."""

from django.apps import AppConfig

RELEASE = "9.9.9"


class NextRelease(AppConfig):
    """Raises the schema's version, as the next release will in its code."""

    name = "tests.kept.next_release"

    def ready(self) -> None:
        """As the code of that release would say it."""
        from pipeline.ops import schema

        schema.SCHEMA += 1
        schema.RELEASE = RELEASE
