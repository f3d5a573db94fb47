"""The tables of the invoices, which the engine's migrations made: only the state is new."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("pipeline", "0005_invoices")]

    operations = [migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(name='Register', fields=[
                    ('workspace', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, serialize=False, to='pipeline.workspace')),
                    ('index_ref', models.CharField(max_length=60)),
                ], options={'db_table': 'pipeline_register'}),
            migrations.CreateModel(name='WebhookCount', fields=[
                    ('name', models.CharField(max_length=12, primary_key=True, serialize=False)),
                    ('count', models.BigIntegerField(default=0)),
                ], options={'db_table': 'pipeline_webhookcount'}),
            migrations.CreateModel(name='FarSide', fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('refunded_minor', models.BigIntegerField()),
                    ('dispute', models.CharField(blank=True, max_length=40)),
                    ('at_ms', models.BigIntegerField()),
                    ('sealed_n', models.BigIntegerField()),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='far_side', to='pipeline.run')),
                ], options={'db_table': 'pipeline_farside'}),
            migrations.CreateModel(name='Supplier', fields=[
                    ('id', models.UUIDField(primary_key=True, serialize=False)),
                    ('code', models.CharField(max_length=8)),
                    ('state', models.CharField(max_length=12)),
                    ('is_sample', models.BooleanField(default=False)),
                    ('registered_by', models.CharField(max_length=80)),
                    ('ref', models.CharField(max_length=60)),
                    ('commitment', models.CharField(max_length=64)),
                    ('ciphertext', models.BinaryField(null=True)),
                    ('sealed_n', models.BigIntegerField(default=0)),
                    ('created_ms', models.BigIntegerField()),
                    ('changed_ms', models.BigIntegerField(default=0)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='suppliers', to='pipeline.workspace')),
                ], options={'db_table': 'pipeline_supplier'}),
            migrations.CreateModel(name='StripeEvent', fields=[
                    ('digest', models.CharField(max_length=64, primary_key=True, serialize=False)),
                    ('kind', models.CharField(max_length=64)),
                    ('at_ms', models.BigIntegerField()),
                    ('looked_ms', models.BigIntegerField(null=True)),
                    ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='pipeline.run')),
                ], options={'db_table': 'pipeline_stripeevent',
                    'indexes': [models.Index(condition=models.Q(('looked_ms', None)), fields=['run'], name='event_news')]}),
            migrations.CreateModel(name='Bill', fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('number', models.CharField(max_length=64)),
                    ('document', models.CharField(max_length=64)),
                    ('total', models.CharField(max_length=64)),
                    ('near', models.CharField(max_length=1200)),
                    ('matched', models.CharField(max_length=10)),
                    ('duplicate_of', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='duplicates', to='pipeline.run')),
                    ('run', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='bill', to='pipeline.run')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='pipeline.workspace')),
                    ('supplier', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bills', to='invoices.supplier')),
                ], options={'db_table': 'pipeline_bill',
                    'indexes': [models.Index(fields=['workspace', 'number'], name='bill_number'), models.Index(fields=['workspace', 'document'], name='bill_document'), models.Index(fields=['workspace', 'total'], name='bill_total')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('duplicate_of', None), models.Q(('number', ''), _negated=True)), fields=('workspace', 'number'), name='bill_first_number'), models.UniqueConstraint(condition=models.Q(('duplicate_of', None)), fields=('workspace', 'document'), name='bill_first_document')]}),
            migrations.CreateModel(name='SupplierIndex', fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(max_length=8)),
                    ('value', models.CharField(max_length=64)),
                    ('supplier', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='indexed', to='invoices.supplier')),
                    ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='pipeline.workspace')),
                ], options={'db_table': 'pipeline_supplierindex',
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'kind', 'value'), name='supplier_index')]}),
    ])]
