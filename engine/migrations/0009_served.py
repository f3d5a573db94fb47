"""When each agent last served a workspace: empty at first, as though none had been served."""

from django.db import migrations, models

from engine.migrations._clustered import CreateClustered, of_log


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0008_tally")]

    operations = [
        CreateClustered(
            name="Served",
            fields=[
                ("pk", models.CompositePrimaryKey("workspace", "agent", serialize=False)),
                ("agent", models.CharField(blank=True, max_length=128)),
                ("at_ms", models.BigIntegerField()),
                ("workspace", of_log("served")),
            ],
        ),
        migrations.RemoveField(model_name="workspace", name="served_ms"),
    ]
