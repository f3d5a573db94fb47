"""All tables. What is written once a step lies in its key's own order (``_clustered``)."""

import django.db.models.deletion
from django.db import migrations, models

from engine.migrations._clustered import CreateClustered


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Budget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('account', models.CharField(max_length=40, unique=True)),
                ('limit', models.BigIntegerField()),
                ('reserved', models.BigIntegerField(default=0)),
                ('spent', models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='Workspace',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('origin', models.CharField(max_length=80, unique=True)),
                ('size', models.BigIntegerField(default=0)),
                ('log_length', models.BigIntegerField(default=0)),
                ('log_head', models.CharField(max_length=64)),
                ('edge', models.BinaryField(default=b'')),
                ('created_ms', models.BigIntegerField()),
                ('weight', models.PositiveSmallIntegerField(default=1)),
                ('served_ms', models.BigIntegerField(default=0)),
                ('accounts', models.BinaryField(default=b'')),
                ('successor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='predecessors', to='pipeline.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('code', models.CharField(max_length=8, unique=True)),
                ('program_hash', models.CharField(max_length=64)),
                ('policy_hash', models.CharField(max_length=64)),
                ('model', models.CharField(max_length=16)),
                ('pace_ms', models.IntegerField(default=0)),
                ('state', models.CharField(max_length=40)),
                ('step', models.CharField(max_length=40)),
                ('snapshot', models.BinaryField()),
                ('length', models.BigIntegerField(default=0)),
                ('head', models.CharField(max_length=64)),
                ('quarantined', models.BooleanField(default=False)),
                ('created_ms', models.BigIntegerField()),
                ('ended_ms', models.BigIntegerField(null=True)),
                ('erased_ms', models.BigIntegerField(null=True)),
                ('deadline_ms', models.BigIntegerField(null=True)),
                ('owed_key', models.CharField(blank=True, max_length=64)),
                ('owed_tool', models.CharField(blank=True, max_length=64)),
                ('owed_ms', models.BigIntegerField(default=0)),
                ('due_ms', models.BigIntegerField(null=True)),
                ('tries', models.IntegerField(default=0)),
                ('begun_ms', models.BigIntegerField(null=True)),
                ('holder', models.CharField(blank=True, max_length=36)),
                ('until_ms', models.BigIntegerField(default=0)),
                ('deliveries', models.BigIntegerField(default=0)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='pipeline.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='WebhookCount',
            fields=[
                ('name', models.CharField(max_length=12, primary_key=True, serialize=False)),
                ('count', models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='Register',
            fields=[
                ('workspace', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, serialize=False, to='pipeline.workspace')),
                ('index_ref', models.CharField(max_length=60)),
            ],
        ),
        CreateClustered(
            name='Node',
            fields=[
                ('pk', models.CompositePrimaryKey('workspace', 'position', blank=True, editable=False, primary_key=True, serialize=False)),
                ('position', models.BigIntegerField()),
                ('level', models.SmallIntegerField()),
                ('index', models.BigIntegerField()),
                ('hash', models.BinaryField()),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='nodes', to='pipeline.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='Envelope',
            fields=[
                ('pk', models.CompositePrimaryKey('workspace', 'seq', blank=True, editable=False, primary_key=True, serialize=False)),
                ('seq', models.BigIntegerField()),
                ('run', models.CharField(max_length=36)),
                ('n', models.BigIntegerField()),
                ('bytes', models.BinaryField()),
                ('hash', models.CharField(max_length=64)),
                ('kind', models.CharField(max_length=24)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='envelopes', to='pipeline.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='Checkpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('size', models.BigIntegerField()),
                ('note', models.BinaryField()),
                ('at_ms', models.BigIntegerField()),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='checkpoints', to='pipeline.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='Terms',
            fields=[
                ('run', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, serialize=False, to='pipeline.run')),
                ('program', models.BinaryField()),
                ('policy', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='FarSide',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('refunded_minor', models.BigIntegerField()),
                ('dispute', models.CharField(blank=True, max_length=40)),
                ('at_ms', models.BigIntegerField()),
                ('sealed_n', models.BigIntegerField()),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='far_side', to='pipeline.run')),
            ],
        ),
        CreateClustered(
            name='AdapterCall',
            fields=[
                ('pk', models.CompositePrimaryKey('run', 'number', blank=True, editable=False, primary_key=True, serialize=False)),
                ('number', models.IntegerField()),
                ('key', models.CharField(max_length=64)),
                ('tool', models.CharField(max_length=64)),
                ('at_ms', models.BigIntegerField()),
                ('outcome', models.CharField(default='begun', max_length=24)),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='adapter_calls', to='pipeline.run')),
            ],
        ),
        migrations.CreateModel(
            name='Absorbed',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40)),
                ('count', models.BigIntegerField(default=0)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='absorbed', to='pipeline.run')),
            ],
        ),
        migrations.CreateModel(
            name='Secret',
            fields=[
                ('ref', models.CharField(max_length=60, primary_key=True, serialize=False)),
                ('slot', models.CharField(max_length=40)),
                ('commitment', models.CharField(max_length=64)),
                ('ciphertext', models.BinaryField(null=True)),
                ('file', models.CharField(blank=True, max_length=60)),
                ('created_ms', models.BigIntegerField()),
                ('erased_ms', models.BigIntegerField(null=True)),
                ('staging', models.BooleanField(default=False)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='secrets', to='pipeline.run')),
            ],
        ),
        migrations.CreateModel(
            name='StripeEvent',
            fields=[
                ('digest', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=64)),
                ('at_ms', models.BigIntegerField()),
                ('looked_ms', models.BigIntegerField(null=True)),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='pipeline.run')),
            ],
        ),
        migrations.CreateModel(
            name='Supplier',
            fields=[
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
            ],
        ),
        migrations.CreateModel(
            name='Bill',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.CharField(max_length=64)),
                ('document', models.CharField(max_length=64)),
                ('total', models.CharField(max_length=64)),
                ('near', models.CharField(max_length=1200)),
                ('matched', models.CharField(max_length=10)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='pipeline.workspace')),
                ('duplicate_of', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='duplicates', to='pipeline.run')),
                ('run', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='bill', to='pipeline.run')),
                ('supplier', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bills', to='pipeline.supplier')),
            ],
        ),
        migrations.CreateModel(
            name='SupplierIndex',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=8)),
                ('value', models.CharField(max_length=64)),
                ('supplier', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='indexed', to='pipeline.supplier')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='pipeline.workspace')),
            ],
        ),
        migrations.AddConstraint(
            model_name='workspace',
            constraint=models.CheckConstraint(condition=models.Q(('weight__gte', 1)), name='workspace_weight'),
        ),
        migrations.AddConstraint(
            model_name='envelope',
            constraint=models.UniqueConstraint(fields=('run', 'workspace', 'n'), name='envelope_n'),
        ),
        migrations.AddIndex(
            model_name='checkpoint',
            index=models.Index(fields=['workspace', '-size'], name='pipeline_ch_workspa_8eb898_idx'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['workspace', '-created_ms'], name='pipeline_ru_workspa_030578_idx'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('ended_ms', None)), fields=['id'], name='run_open'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('deadline_ms__isnull', False), ('holder', '')), fields=['deadline_ms'], name='run_deadline'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('due_ms__isnull', False)), fields=['due_ms'], name='run_due'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('until_ms__gt', 0)), fields=['until_ms'], name='run_held'),
        ),
        migrations.AddConstraint(
            model_name='absorbed',
            constraint=models.UniqueConstraint(fields=('run', 'kind'), name='absorbed_kind'),
        ),
        migrations.AddIndex(
            model_name='stripeevent',
            index=models.Index(condition=models.Q(('looked_ms', None)), fields=['run'], name='event_news'),
        ),
        migrations.AddIndex(
            model_name='bill',
            index=models.Index(fields=['workspace', 'number'], name='bill_number'),
        ),
        migrations.AddIndex(
            model_name='bill',
            index=models.Index(fields=['workspace', 'document'], name='bill_document'),
        ),
        migrations.AddIndex(
            model_name='bill',
            index=models.Index(fields=['workspace', 'total'], name='bill_total'),
        ),
        migrations.AddConstraint(
            model_name='bill',
            constraint=models.UniqueConstraint(condition=models.Q(('duplicate_of', None), models.Q(('number', ''), _negated=True)), fields=('workspace', 'number'), name='bill_first_number'),
        ),
        migrations.AddConstraint(
            model_name='bill',
            constraint=models.UniqueConstraint(condition=models.Q(('duplicate_of', None)), fields=('workspace', 'document'), name='bill_first_document'),
        ),
        migrations.AddConstraint(
            model_name='supplierindex',
            constraint=models.UniqueConstraint(fields=('workspace', 'kind', 'value'), name='supplier_index'),
        ),
    ]
