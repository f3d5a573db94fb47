"""Claims on invoices: what finds the same invoice again."""

import django.db.models.deletion
from django.db import migrations, models

PROTECT = django.db.models.deletion.PROTECT


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0004_suppliers")]

    operations = [
        migrations.CreateModel(
            name="Bill",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.CharField(max_length=64)),
                ("document", models.CharField(max_length=64)),
                ("total", models.CharField(max_length=64)),
                ("near", models.CharField(max_length=1200)),
                ("matched", models.CharField(max_length=10)),
                (
                    "duplicate_of",
                    models.ForeignKey(
                        null=True, on_delete=PROTECT, related_name="duplicates", to="pipeline.run"
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=PROTECT, related_name="bill", to="pipeline.run"
                    ),
                ),
                (
                    "supplier",
                    models.ForeignKey(
                        on_delete=PROTECT, related_name="bills", to="pipeline.supplier"
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False, on_delete=PROTECT, to="pipeline.workspace"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["workspace", "number"], name="bill_number"),
                    models.Index(fields=["workspace", "document"], name="bill_document"),
                    models.Index(fields=["workspace", "total"], name="bill_total"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["workspace", "number"],
                        condition=models.Q(duplicate_of=None) & ~models.Q(number=""),
                        name="bill_first_number",
                    ),
                    models.UniqueConstraint(
                        fields=["workspace", "document"],
                        condition=models.Q(duplicate_of=None),
                        name="bill_first_document",
                    ),
                ],
            },
        ),
    ]
