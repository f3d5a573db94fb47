"""Cedar beside our rules: a policy written as Cedar, and Cedar as a second judge of calls."""
