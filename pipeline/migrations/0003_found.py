"""What lists find runs by; an upgrade fills both tables for the runs that are there."""

from django.db import migrations, models
from django.db.models import PROTECT

from engine.migrations._clustered import CreateClustered


def reference(to):
    return models.ForeignKey(db_index=False, on_delete=PROTECT, related_name="+", to=to)


class Migration(migrations.Migration):
    dependencies = [("invoices", "0002_marks"), ("pipeline", "0009_served")]

    operations = [
        CreateClustered("Listed", fields=[
            ("pk", models.CompositePrimaryKey("workspace", "run", serialize=False)),
            ("workspace", reference("pipeline.workspace")),
            ("run", reference("pipeline.run")),
            ("code", models.CharField(max_length=8)),
            ("state", models.CharField(max_length=10)),
            ("supplier", models.UUIDField(null=True)),
            ("amount_minor", models.BigIntegerField(null=True)),
            ("currency", models.CharField(max_length=3)),
            ("paid", models.BooleanField()),
        ], options={"db_table": "pipeline_listed"}),
        CreateClustered("Found", fields=[
            ("pk", models.CompositePrimaryKey("workspace", "word", "run", serialize=False)),
            ("workspace", reference("pipeline.workspace")),
            ("word", models.CharField(max_length=24)),
            ("run", reference("pipeline.run")),
        ], options={"db_table": "pipeline_found", "indexes": [models.Index(fields=["run"], name="found_run")]}),
    ]
