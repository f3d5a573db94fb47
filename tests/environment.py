"""The environment of every test, set before Django reads its settings (a pytest plugin)."""

import os
import tempfile

from tests import postgres

# No test touches the data of a real installation, and none is led elsewhere by the caller's
# environment.
FOLDER = tempfile.TemporaryDirectory(prefix="nanovm-tests-")
os.environ["NANOVM_DATA"] = FOLDER.name
LED_BY = ("DATABASE_URL", "REDIS_URL", "STRIPE_API_BASE", "STRIPE_SECRET_KEY", "NANOVM_HOSTS")
for name in (*LED_BY, "NANOVM_MODEL_URL"):
    os.environ.pop(name, None)
if postgres.WANTED:  # its server is started by the first test that needs it
    os.environ["DATABASE_URL"] = postgres.url("postgres")
