"""The list of calls by agents from outside; no older release has any."""

import django.db.models.deletion
from django.db import migrations, models

PROTECT = django.db.models.deletion.PROTECT


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0010_links")]

    operations = [
        migrations.CreateModel("Call", fields=[
            ("run", models.OneToOneField(on_delete=PROTECT, primary_key=True, related_name="call", serialize=False, to="pipeline.run")),
            ("workspace", models.ForeignKey(db_index=False, on_delete=PROTECT, related_name="+", to="pipeline.workspace")),
            ("agent", models.CharField(max_length=30)),
            ("program", models.CharField(max_length=40)),
            ("tool", models.CharField(max_length=64)),
            ("created_ms", models.BigIntegerField()),
        ], options={"indexes": [models.Index(fields=["workspace", "agent", "-created_ms"], name="call_of_agent")]}),
    ]
