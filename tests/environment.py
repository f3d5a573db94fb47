"""The environment of every test, set before Django reads its settings (a pytest plugin)."""

import os
import tempfile

# No test touches the data of a real installation, and none is led elsewhere by the caller's
# environment.
FOLDER = tempfile.TemporaryDirectory(prefix="nanovm-tests-")
os.environ["NANOVM_DATA"] = FOLDER.name
for name in ("REDIS_URL", "STRIPE_API_BASE", "STRIPE_SECRET_KEY", "NANOVM_HOSTS"):
    os.environ.pop(name, None)
