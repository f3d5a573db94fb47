"""What a log had counted, and when, for windows of time: empty at first, so windows begin empty."""

import django.db.models.deletion
from django.db import migrations, models

from engine.migrations._clustered import CreateClustered


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0007_ledger")]

    operations = [
        CreateClustered(
            name="Tally",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "workspace",
                        "scope",
                        "what",
                        "at_ms",
                        "seq",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("scope", models.CharField(blank=True, max_length=128)),
                ("what", models.CharField(max_length=160)),
                ("at_ms", models.BigIntegerField()),
                ("seq", models.BigIntegerField()),
                ("total", models.BigIntegerField()),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tallies",
                        to="pipeline.workspace",
                    ),
                ),
            ],
        ),
    ]
