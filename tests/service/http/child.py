"""A service in a process of its own: `child.py PATH SETTINGS`, the settings as JSON; it logs its address.

With `url` and `prefix` among the settings, it serves that index on a server instead of the path.
"""

import json
import sys

from likewise.service import Settings, serve
from likewise.service.settings import key_of

if __name__ == "__main__":
    settings = json.loads(sys.argv[2])
    keys = tuple(key_of(secret, name=name, right=name) for name, secret in settings.pop("keys", {}).items())
    # Only tests of limits set one: the others may take as long as a busy machine needs.
    patient = dict.fromkeys(["deadline_s", "receive_s", "send_s", "idle_s"], 600.0)
    shared = {name: settings.pop(name) for name in ("url", "prefix") if name in settings}
    serve(None if shared else sys.argv[1], Settings(keys=keys, **(patient | settings)), port=0, **shared)
