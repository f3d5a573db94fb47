"""What every test stands on: examples that never vary, and nothing kept between tests."""

from hypothesis import settings

settings.register_profile("nanovm", derandomize=True, deadline=None, database=None)
settings.load_profile("nanovm")
