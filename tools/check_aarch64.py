"""Run the kernel tests for aarch64 in an emulator.

``python tools/check_aarch64.py``: builds the tests of the crate with kernels for 64-bit ARM and runs those that
compare instruction sets under Debian's ``qemu-user``. Needs ``rustup``, ``gcc-aarch64-linux-gnu``,
``libc6-dev-arm64-cross`` and ``qemu-user``; if one of them is missing, it says so and checks nothing.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = "aarch64-unknown-linux-gnu"
LIBRARIES = "/usr/aarch64-linux-gnu"
VARIABLES = {
    "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER": "aarch64-linux-gnu-gcc",
    "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER": f"qemu-aarch64 -L {LIBRARIES}",
    "CARGO_PROFILE_TEST_DEBUG": "0",
}
# Substrings of test names. Other tests run on the native processor: they would take minutes here.
TESTS = ["isa::", "kernel"]


def missing() -> str | None:
    """Return why nothing can be checked here, or None."""
    for program in ("rustup", "aarch64-linux-gnu-gcc", "qemu-aarch64"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    if not Path(LIBRARIES, "lib", "ld-linux-aarch64.so.1").exists():
        return f"there is no C library in {LIBRARIES}"
    added = subprocess.run(["rustup", "--quiet", "target", "add", TARGET], cwd=ROOT, capture_output=True, text=True)
    return f"rustup has no {TARGET}: {added.stderr.strip()}" if added.returncode else None


def main() -> int:
    """Build and run the tests, or report why not."""
    if reason := missing():
        print(f"aarch64: not checked, {reason}")
        return 0
    command = ["cargo", "test", "--locked", "--quiet", "--target", TARGET, "-p", "likewise-core", "--lib", "--", *TESTS]
    return subprocess.run(command, cwd=ROOT, env=os.environ | VARIABLES).returncode


if __name__ == "__main__":
    sys.exit(main())
