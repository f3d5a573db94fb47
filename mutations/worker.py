"""The worker of a copy: Celery's own, with the extra tool and readers like its own."""

import sys

import django
from celery.__main__ import main

if __name__ == "__main__":
    django.setup()
    from mutations.extra_tool import register  # the product's tables need Django to be ready
    from mutations.readers import lack_guards_too

    register()
    lack_guards_too()
    sys.exit(main())
