"""Links that hand one right on: none at first."""

from django.db import migrations, models
from django.db.models import PROTECT


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0009_served")]

    operations = [
        migrations.CreateModel(
            name="Link",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("grants", models.CharField(max_length=8)),
                ("target", models.CharField(max_length=40)),
                ("narrowed", models.BooleanField()),
                ("secret", models.CharField(max_length=64, unique=True)),
                ("until_ms", models.BigIntegerField()),
                ("sealed_n", models.BigIntegerField()),
                ("revoked_ms", models.BigIntegerField(null=True)),
                ("used_ms", models.BigIntegerField(null=True)),
                ("spent_ms", models.BigIntegerField(null=True)),
                ("uses", models.BigIntegerField(default=0)),
                ("workspace", models.ForeignKey(on_delete=PROTECT, related_name="links", to="pipeline.workspace")),
            ],
        ),
    ]
