"""Collections of a service, and how concurrent requests share the index of one."""
