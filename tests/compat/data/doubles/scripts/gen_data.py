"""Write input and golden; scenario 2 doubles twice."""

import argparse
import struct
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("-scenario", type=int, default=1)
factor = 4 if parser.parse_args().scenario == 2 else 2
Path("input").mkdir(exist_ok=True)
Path("output").mkdir(exist_ok=True)
x = [index - 100.5 for index in range(256)]
Path("input/x.bin").write_bytes(struct.pack("256f", *x))
Path("output/golden.bin").write_bytes(struct.pack("256f", *(factor * value for value in x)))
