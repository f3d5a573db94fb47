"""Terms once for all runs that began under them, and one index of runs in the place of three."""

import hashlib

import django.db.models.deletion
from django.db import migrations, models

INSERT = (
    "INSERT INTO pipeline_terms (digest, program, policy, grants) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT (digest) DO NOTHING"
)
ROWS = "SELECT run_id, program, policy, grants FROM pipeline_termsofrun"
NAME = "UPDATE pipeline_run SET terms_id = %s WHERE id = %s"


def data(value):
    """The bytes in a column, where SQLite keeps even text if it is put there."""
    return value.encode() if isinstance(value, str) else bytes(value or b"")


def convert(apps, schema_editor):
    """Store the terms of each run once, and name them in the run's row: as they are, row by row."""
    connection = schema_editor.connection
    with connection.chunked_cursor() as rows, connection.cursor() as cursor:
        rows.execute(ROWS)
        for run, *stored in rows:
            parts = [*map(data, stored)]
            said = b"".join(b"%d " % len(each) + each for each in parts)
            digest = hashlib.sha256(b"nanovm/terms/v1\0" + said).hexdigest()
            cursor.execute(INSERT, [digest, parts[0], parts[1], parts[2] or None])
            cursor.execute(NAME, [digest, run])


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0010_links")]

    operations = [
        migrations.RemoveIndex("run", "run_open"),
        migrations.RemoveIndex("run", "run_due"),
        migrations.RemoveIndex("run", "run_held"),
        migrations.AddIndex(
            "run",
            models.Index(
                fields=["due_ms", "until_ms"],
                condition=models.Q(
                    ("ended_ms", None),
                    ("until_ms__gt", 0),
                    ("due_ms__isnull", False),
                    _connector="OR",
                ),
                name="run_open",
            ),
        ),
        migrations.RenameModel("Terms", "TermsOfRun"),
        migrations.CreateModel(
            name="Terms",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("program", models.BinaryField()),
                ("policy", models.BinaryField()),
                ("grants", models.BinaryField(null=True)),
            ],
        ),
        migrations.AddField(
            "run",
            "terms",
            models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                to="pipeline.terms",
            ),
        ),
        migrations.RunPython(convert, elidable=False),
        migrations.DeleteModel("TermsOfRun"),
    ]
