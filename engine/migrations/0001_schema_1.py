"""The tables of runs. What is written once a step lies in its key's own order (``_clustered``)."""

from django.db import migrations, models
from django.db.models import CASCADE, PROTECT

from engine.migrations._clustered import CreateClustered, of_log


class Migration(migrations.Migration):
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
                ('successor', models.ForeignKey(null=True, on_delete=PROTECT, related_name='predecessors', to='pipeline.workspace')),
            ],
            options={'constraints': [models.CheckConstraint(condition=models.Q(('weight__gte', 1)), name='workspace_weight')]},
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
                ('workspace', of_log('runs')),
            ],
            options={'indexes': [
                models.Index(fields=['workspace', '-created_ms'], name='pipeline_ru_workspa_030578_idx'),
                models.Index(condition=models.Q(('ended_ms', None)), fields=['id'], name='run_open'),
                models.Index(condition=models.Q(('deadline_ms__isnull', False), ('holder', '')), fields=['deadline_ms'], name='run_deadline'),
                models.Index(condition=models.Q(('due_ms__isnull', False)), fields=['due_ms'], name='run_due'),
                models.Index(condition=models.Q(('until_ms__gt', 0)), fields=['until_ms'], name='run_held'),
            ]},
        ),
        CreateClustered(
            name='Node',
            fields=[
                ('pk', models.CompositePrimaryKey('workspace', 'position', serialize=False)),
                ('position', models.BigIntegerField()),
                ('level', models.SmallIntegerField()),
                ('index', models.BigIntegerField()),
                ('hash', models.BinaryField()),
                ('workspace', of_log('nodes')),
            ],
        ),
        migrations.CreateModel(
            name='Envelope',
            fields=[
                ('pk', models.CompositePrimaryKey('workspace', 'seq', serialize=False)),
                ('seq', models.BigIntegerField()),
                ('run', models.CharField(max_length=36)),
                ('n', models.BigIntegerField()),
                ('bytes', models.BinaryField()),
                ('hash', models.CharField(max_length=64)),
                ('kind', models.CharField(max_length=24)),
                ('workspace', of_log('envelopes')),
            ],
            options={'constraints': [models.UniqueConstraint(fields=('run', 'workspace', 'n'), name='envelope_n')]},
        ),
        migrations.CreateModel(
            name='Checkpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('size', models.BigIntegerField()),
                ('note', models.BinaryField()),
                ('at_ms', models.BigIntegerField()),
                ('workspace', of_log('checkpoints')),
            ],
            options={'indexes': [models.Index(fields=['workspace', '-size'], name='pipeline_ch_workspa_8eb898_idx')]},
        ),
        migrations.CreateModel(
            name='Terms',
            fields=[
                ('run', models.OneToOneField(on_delete=PROTECT, primary_key=True, serialize=False, to='pipeline.run')),
                ('program', models.BinaryField()),
                ('policy', models.BinaryField()),
            ],
        ),
        CreateClustered(
            name='AdapterCall',
            fields=[
                ('pk', models.CompositePrimaryKey('run', 'number', serialize=False)),
                ('number', models.IntegerField()),
                ('key', models.CharField(max_length=64)),
                ('tool', models.CharField(max_length=64)),
                ('at_ms', models.BigIntegerField()),
                ('outcome', models.CharField(default='begun', max_length=24)),
                ('run', models.ForeignKey(db_index=False, on_delete=PROTECT, related_name='adapter_calls', to='pipeline.run')),
            ],
        ),
        migrations.CreateModel(
            name='Absorbed',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40)),
                ('count', models.BigIntegerField(default=0)),
                ('run', models.ForeignKey(on_delete=CASCADE, related_name='absorbed', to='pipeline.run')),
            ],
            options={'constraints': [models.UniqueConstraint(fields=('run', 'kind'), name='absorbed_kind')]},
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
                ('run', models.ForeignKey(on_delete=PROTECT, related_name='secrets', to='pipeline.run')),
            ],
        ),
    ]
