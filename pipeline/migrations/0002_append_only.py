"""Triggers that refuse to change or delete an envelope: a speed bump, not a wall."""

from django.db import migrations

TABLE = "pipeline_envelope"
TRIGGERS = {
    f"{TABLE}_no_update": "UPDATE",
    f"{TABLE}_no_delete": "DELETE",
}


def sqlite_trigger(name, action):
    return (
        f"CREATE TRIGGER {name} BEFORE {action} ON {TABLE} "
        "BEGIN SELECT RAISE(ABORT, 'envelopes are append-only'); END"
    )


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        for name, action in TRIGGERS.items():
            schema_editor.execute(sqlite_trigger(name, action))
        return
    schema_editor.execute(
        "CREATE FUNCTION pipeline_envelope_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'envelopes are append-only'; END $$"
    )
    for name, action in TRIGGERS.items():
        schema_editor.execute(
            f"CREATE TRIGGER {name} BEFORE {action} ON {TABLE} "
            "FOR EACH ROW EXECUTE FUNCTION pipeline_envelope_refuse()"
        )


def drop(apps, schema_editor):
    on = "" if schema_editor.connection.vendor == "sqlite" else f" ON {TABLE}"
    for name in TRIGGERS:
        schema_editor.execute(f"DROP TRIGGER {name}{on}")
    if on:
        schema_editor.execute("DROP FUNCTION pipeline_envelope_refuse()")


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0001_initial")]
    operations = [migrations.RunPython(create, drop)]
