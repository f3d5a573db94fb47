"""Whence a workspace's last form came, for the slots in which documents are read."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0003_version")]

    operations = [migrations.AddField("workspace", "place", models.IntegerField(null=True))]
