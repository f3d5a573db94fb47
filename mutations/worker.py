"""The worker of a copy: Celery's own, with the extra tool."""

import sys

import django
from celery.__main__ import main

if __name__ == "__main__":
    django.setup()
    from mutations.extra_tool import register  # the product's tables need Django to be ready

    register()
    sys.exit(main())
