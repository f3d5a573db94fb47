"""The environment of every test, set before Django reads its settings (a pytest plugin)."""

import os
import tempfile

from tests import postgres

MEMORY, MEMORY_BYTES_MIN = "/dev/shm", 2 << 30


def has_room(folder: str) -> bool:
    """Whether a folder that is kept in memory exists, has room and runs programs."""
    if not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    runs = not found.f_flag & os.ST_NOEXEC
    return runs and found.f_bavail * found.f_frsize >= MEMORY_BYTES_MIN


# A test ends its processes, never the machine: nothing it writes has to reach a disk.
if "TMPDIR" not in os.environ and has_room(MEMORY):
    os.environ["TMPDIR"], tempfile.tempdir = MEMORY, None

# No test touches the data of a real installation, and none is led elsewhere by the caller's
# environment.
FOLDER = tempfile.TemporaryDirectory(prefix="nanovm-tests-")
os.environ["NANOVM_DATA"] = FOLDER.name
LED_BY = ("DATABASE_URL", "REDIS_URL", "STRIPE_API_BASE", "STRIPE_SECRET_KEY", "NANOVM_HOSTS")
os.environ["NANOVM_COPIES_AHEAD"] = "0"  # a copy takes seconds: a test asks for the one it needs
os.environ["NANOVM_QUOTA_FACTOR"] = "0"  # one visitor's tests are more than anybody's hour
for name in (*LED_BY, "NANOVM_MODEL_URL", "NANOVM_ADVISOR_URL", "NANOVM_ORIGINS", "NANOVM_PROXY"):
    os.environ.pop(name, None)
if postgres.WANTED:  # its server is started by the first test that needs it
    os.environ["DATABASE_URL"] = postgres.url("postgres")
