from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0007_fair_turns'),
    ]

    operations = [
        migrations.AddField(
            model_name='workspace',
            name='edge',
            field=models.BinaryField(default=b''),
        ),
    ]
