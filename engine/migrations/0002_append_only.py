"""Triggers that refuse to change or delete what is sealed: a speed bump, not a wall."""

from django.db import migrations

TABLES = {
    "pipeline_envelope": "envelopes",
    "pipeline_node": "nodes",
    "pipeline_checkpoint": "checkpoints",
}
ACTIONS = ("UPDATE", "DELETE")
ERROR = "USING ERRCODE = 'integrity_constraint_violation'"  # as SQLite calls it


def create(apps, schema_editor):
    sqlite = schema_editor.connection.vendor == "sqlite"
    for table, what in TABLES.items():
        refusal = f"{what} are append-only"
        if not sqlite:
            schema_editor.execute(
                f"CREATE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN RAISE EXCEPTION '{refusal}' {ERROR}; END $$"
            )
            schema_editor.execute(
                f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
                f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_refuse()"
            )
        for action in ACTIONS:
            head = f"CREATE TRIGGER {table}_no_{action.lower()} BEFORE {action} ON {table} "
            refuse = (
                f"BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
                if sqlite
                else f"FOR EACH ROW EXECUTE FUNCTION {table}_refuse()"
            )
            schema_editor.execute(head + refuse)


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0001_schema_1")]
    operations = [migrations.RunPython(create)]
