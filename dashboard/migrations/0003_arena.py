"""Attacks from the red team's box, and the names that visitors play under."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0002_sent_by_workspace'),
        ('pipeline', '0001_tables'),
        ('sabotage', '0002_control'),
    ]

    operations = [
        migrations.CreateModel(
            name='Player',
            fields=[
                ('workspace', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='player', serialize=False, to='pipeline.workspace')),
                ('name', models.CharField(max_length=24)),
            ],
        ),
        migrations.CreateModel(
            name='Entry',
            fields=[
                ('attack', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='entry', serialize=False, to='sabotage.attack')),
                ('at_ms', models.BigIntegerField()),
                ('reproduction', models.JSONField(default=dict)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='pipeline.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', '-at_ms'], name='entry_of_workspace')],
            },
        ),
    ]
