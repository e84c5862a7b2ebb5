"""Compare two files of floats."""

import struct
import sys
from pathlib import Path

actual, golden = (struct.unpack("256f", Path(name).read_bytes()) for name in sys.argv[1:3])
wrong = [index for index in range(256) if actual[index] != golden[index]]
if wrong:
    first = wrong[0]
    print(f"data index: {first}, expected: {golden[first]}, actual: {actual[first]}")
    sys.exit(1)
print("test pass!")
