"""The worker of a copy: Celery's own, with readers that lack the same guards."""

import sys

import django
from celery.__main__ import main

if __name__ == "__main__":
    django.setup()
    from mutations.readers import lack_guards_too  # the product's tables need Django to be ready

    lack_guards_too()
    sys.exit(main())
