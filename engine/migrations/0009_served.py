"""When each agent last served a workspace: empty at first, as though none had been served."""

import django.db.models.deletion
from django.db import migrations, models

from engine.migrations._clustered import CreateClustered


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0008_tally")]

    operations = [
        CreateClustered(
            name="Served",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "workspace",
                        "agent",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("agent", models.CharField(blank=True, max_length=128)),
                ("at_ms", models.BigIntegerField()),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="served",
                        to="pipeline.workspace",
                    ),
                ),
            ],
        ),
        migrations.RemoveField(model_name="workspace", name="served_ms"),
    ]
