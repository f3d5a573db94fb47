"""A form's key counts within its workspace. What was remembered is good for a minute: it goes."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0001_initial'),
        ('pipeline', '0001_tables'),
    ]

    operations = [
        migrations.DeleteModel(name='Sent'),
        migrations.CreateModel(
            name='Sent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=64)),
                ('browser', models.CharField(max_length=64, null=True)),
                ('url', models.CharField(blank=True, max_length=200)),
                ('created_ms', models.BigIntegerField()),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sent', to='pipeline.workspace')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'key'), name='sent_once'),
                    models.UniqueConstraint(fields=('browser', 'key'), name='sent_once_by_browser'),
                ],
            },
        ),
    ]
