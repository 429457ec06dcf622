"""Locks on open files, which end with the process however it ends."""

import os
import sys

# Locks of Windows bar others from the bytes themselves: so the one that is locked stands far behind the content.
_FAR = 1 << 30


def try_lock(file: int) -> bool:
    """Lock an open file for as long as it is open; return False where someone else has.

    Parameters
    ----------
    file : int
        Its descriptor; of a file that is far below a gigabyte.

    Raises
    ------
    OSError
        If the file system has no locks.
    """
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
