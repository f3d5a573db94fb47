"""What a log had counted, and when, for windows of time: empty at first, so windows begin empty."""

from django.db import migrations, models

from engine.migrations._clustered import CreateClustered, of_log


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0007_ledger")]

    operations = [
        CreateClustered(
            name="Tally",
            fields=[
                ("pk", models.CompositePrimaryKey("workspace", "scope", "what", "at_ms", "seq", serialize=False)),
                ("scope", models.CharField(blank=True, max_length=128)),
                ("what", models.CharField(max_length=160)),
                ("at_ms", models.BigIntegerField()),
                ("seq", models.BigIntegerField()),
                ("total", models.BigIntegerField()),
                ("workspace", of_log("tallies")),
            ],
        ),
    ]
