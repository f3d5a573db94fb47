"""Budgets become shared accounts with an owner; grants can be taken back."""

import django.db.models.deletion
from django.db import migrations, models


def name_accounts(apps, schema_editor):
    """What stood there were the workspaces' accounts, one a currency."""
    budgets = apps.get_model("pipeline", "Budget").objects
    for budget in budgets.all():
        budget.owner = str(budget.workspace_id)
        budget.account = f"workspace/{budget.currency}"
        budget.save(update_fields=["owner", "account"])


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0002_append_only")]

    operations = [
        migrations.RemoveConstraint("Budget", "budget_currency"),
        migrations.RenameField("Budget", "limit_minor", "limit"),
        migrations.RenameField("Budget", "reserved_minor", "reserved"),
        migrations.RenameField("Budget", "spent_minor", "spent"),
        migrations.AddField("Budget", "owner", models.CharField(max_length=120, default="")),
        migrations.AddField("Budget", "account", models.CharField(max_length=40, default="")),
        migrations.RunPython(name_accounts, migrations.RunPython.noop),
        migrations.RemoveField("Budget", "currency"),
        migrations.AlterField("Budget", "owner", models.CharField(max_length=120)),
        migrations.AlterField("Budget", "account", models.CharField(max_length=40)),
        migrations.AlterField(
            "Budget",
            "workspace",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="budgets",
                to="pipeline.workspace",
            ),
        ),
        migrations.AddConstraint(
            "Budget",
            models.UniqueConstraint(fields=("owner", "account"), name="budget_account"),
        ),
        migrations.CreateModel(
            name="Revocation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("grant", models.CharField(max_length=64)),
                ("tool", models.CharField(max_length=64)),
                ("at_ms", models.BigIntegerField()),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="revocations",
                        to="pipeline.workspace",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            "Revocation",
            models.UniqueConstraint(fields=("workspace", "grant"), name="revocation_grant"),
        ),
    ]
