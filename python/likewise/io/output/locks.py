"""Locks on open files, which end with the process, however it ends."""

import os
import sys

# Locks on Windows prevent others from reading the locked bytes, so lock a byte far after the content.
_FAR = 1 << 30


def try_lock(file: int) -> bool:
    """Lock an open file until it is closed; return False if it is locked elsewhere."""
    if sys.platform == "win32":
        import msvcrt

        place = os.lseek(file, 0, os.SEEK_CUR)
        os.lseek(file, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        finally:
            os.lseek(file, place, os.SEEK_SET)
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
