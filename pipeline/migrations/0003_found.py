"""What lists find runs by; an upgrade fills both tables for the runs that are there."""

import django.db.models.deletion
from django.db import migrations, models

from engine.migrations._clustered import CreateClustered

PROTECT = django.db.models.deletion.PROTECT


def reference(to):
    return models.ForeignKey(db_index=False, on_delete=PROTECT, related_name="+", to=to)


def key(*names):
    return models.CompositePrimaryKey(*names, blank=True, editable=False, primary_key=True, serialize=False)


class Migration(migrations.Migration):
    dependencies = [("invoices", "0002_marks"), ("pipeline", "0009_served")]

    operations = [
        CreateClustered("Listed", fields=[
            ("pk", key("workspace", "run")),
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
            ("pk", key("workspace", "word", "run")),
            ("workspace", reference("pipeline.workspace")),
            ("word", models.CharField(max_length=24)),
            ("run", reference("pipeline.run")),
        ], options={"db_table": "pipeline_found", "indexes": [models.Index(fields=["run"], name="found_run")]}),
    ]
