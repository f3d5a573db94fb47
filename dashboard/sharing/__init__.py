"""Links that hand one right on: made and revoked by their owner, used by whoever has one."""
