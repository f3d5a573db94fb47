"""Tables whose rows lie in the order of their primary key, one page a row, and rows of a log."""

from django.db import migrations, models


def of_log(related_name):
    """The log that a row belongs to; the table's own index begins with it."""
    return models.ForeignKey(
        "pipeline.workspace", models.PROTECT, related_name=related_name, db_index=False
    )


class CreateClustered(migrations.CreateModel):
    """A table that SQLite keeps in its key's own tree; PostgreSQL has no such thing."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        before = schema_editor.sql_create_table
        if schema_editor.connection.vendor == "sqlite":
            schema_editor.sql_create_table = before + " WITHOUT ROWID"
        try:
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        finally:
            schema_editor.sql_create_table = before
