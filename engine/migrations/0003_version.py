"""Which layout the database has; its columns stay as they are for good."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0002_append_only")]

    operations = [
        migrations.CreateModel(
            name="Schema",
            fields=[
                ("version", models.PositiveIntegerField(primary_key=True, serialize=False)),
                ("release", models.CharField(max_length=20)),
                ("at_ms", models.BigIntegerField()),
            ],
        ),
    ]
