"""A service in a process of its own: `child.py PATH SETTINGS`, the settings as JSON; says its address in its log."""

import json
import sys

from likewise.service import Settings, serve
from likewise.service.keys import key_of

if __name__ == "__main__":
    settings = json.loads(sys.argv[2])
    keys = tuple(key_of(secret, name=name, right=name) for name, secret in settings.pop("keys", {}).items())
    # Only a test of a limit has one: the others may take as long as a busy machine takes.
    patient = dict.fromkeys(["deadline_s", "receive_s", "send_s", "idle_s"], 600.0)
    serve(sys.argv[1], Settings(keys=keys, **(patient | settings)), port=0)
