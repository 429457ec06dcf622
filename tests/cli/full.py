"""`likewise` with a limit on the size of files, or with a device that is always full as its standard output.

`full.py NUM_BYTES STANDARD_OUTPUT ARGUMENTS`; NUM_BYTES 0 means no limit.
"""

import os
import resource
import sys

from likewise.cli import main

if __name__ == "__main__":
    num_bytes, standard_output = int(sys.argv[1]), sys.argv[2]
    if num_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, num_bytes))
    os.dup2(os.open(standard_output, os.O_WRONLY), 1)
    main(sys.argv[3:])
