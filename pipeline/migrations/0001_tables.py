"""The tables of the invoices; the engine's migrations made them up to schema 2."""

from django.db import migrations, models
from django.db.models import PROTECT


class CreateMissing(migrations.CreateModel):
    """A table where there is none of this name; one that the engine made stays as it is."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if self.options["db_table"] not in schema_editor.connection.introspection.table_names():
            super().database_forwards(app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0005_invoices")]

    operations = [
        CreateMissing(name='Register', fields=[
                ('workspace', models.OneToOneField(on_delete=PROTECT, primary_key=True, serialize=False, to='pipeline.workspace')),
                ('index_ref', models.CharField(max_length=60)),
            ], options={'db_table': 'pipeline_register'}),
        CreateMissing(name='WebhookCount', fields=[
                ('name', models.CharField(max_length=12, primary_key=True, serialize=False)),
                ('count', models.BigIntegerField(default=0)),
            ], options={'db_table': 'pipeline_webhookcount'}),
        CreateMissing(name='FarSide', fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('refunded_minor', models.BigIntegerField()),
                ('dispute', models.CharField(blank=True, max_length=40)),
                ('at_ms', models.BigIntegerField()),
                ('sealed_n', models.BigIntegerField()),
                ('run', models.ForeignKey(on_delete=PROTECT, related_name='far_side', to='pipeline.run')),
            ], options={'db_table': 'pipeline_farside'}),
        CreateMissing(name='Supplier', fields=[
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
                ('workspace', models.ForeignKey(on_delete=PROTECT, related_name='suppliers', to='pipeline.workspace')),
            ], options={'db_table': 'pipeline_supplier'}),
        CreateMissing(name='StripeEvent', fields=[
                ('digest', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=64)),
                ('at_ms', models.BigIntegerField()),
                ('looked_ms', models.BigIntegerField(null=True)),
                ('run', models.ForeignKey(null=True, on_delete=PROTECT, related_name='events', to='pipeline.run')),
            ], options={'db_table': 'pipeline_stripeevent',
                'indexes': [models.Index(condition=models.Q(('looked_ms', None)), fields=['run'], name='event_news')]}),
        CreateMissing(name='Bill', fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.CharField(max_length=64)),
                ('document', models.CharField(max_length=64)),
                ('total', models.CharField(max_length=64)),
                ('near', models.CharField(max_length=1200)),
                ('matched', models.CharField(max_length=10)),
                ('duplicate_of', models.ForeignKey(null=True, on_delete=PROTECT, related_name='duplicates', to='pipeline.run')),
                ('run', models.OneToOneField(on_delete=PROTECT, related_name='bill', to='pipeline.run')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=PROTECT, to='pipeline.workspace')),
                ('supplier', models.ForeignKey(on_delete=PROTECT, related_name='bills', to='invoices.supplier')),
            ], options={'db_table': 'pipeline_bill',
                'indexes': [models.Index(fields=['workspace', 'number'], name='bill_number'), models.Index(fields=['workspace', 'document'], name='bill_document'), models.Index(fields=['workspace', 'total'], name='bill_total')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('duplicate_of', None), models.Q(('number', ''), _negated=True)), fields=('workspace', 'number'), name='bill_first_number'), models.UniqueConstraint(condition=models.Q(('duplicate_of', None)), fields=('workspace', 'document'), name='bill_first_document')]}),
        CreateMissing(name='SupplierIndex', fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=8)),
                ('value', models.CharField(max_length=64)),
                ('supplier', models.ForeignKey(on_delete=PROTECT, related_name='indexed', to='invoices.supplier')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=PROTECT, to='pipeline.workspace')),
            ], options={'db_table': 'pipeline_supplierindex',
                'constraints': [models.UniqueConstraint(fields=('workspace', 'kind', 'value'), name='supplier_index')]}),
    ]
