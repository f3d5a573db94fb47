"""The supplier register: whom a workspace pays, and under which bank details."""
