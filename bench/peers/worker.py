"""One peer on a number of threads, asked line by line what run.py wants measured, so that peers can take turns:
worker.py numpy_peer|torch_peer THREADS. First says what it is; an empty answer means that it takes no part."""
import importlib
import json
import os
import sys

from timing import fastest_seconds

name, threads = sys.argv[1], int(sys.argv[2])
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(threads)
try:
    peer = importlib.import_module(name)
except ImportError:
    print(json.dumps({}), flush=True)
    sys.exit()
print(json.dumps({"version": peer.describe(threads)}), flush=True)
made, deviation = None, None
for line in sys.stdin:
    row = line.strip()
    if row != made:
        work = peer.make(row)
        made, deviation = row, None if work is None else work[1]()
    answer = {} if work is None else {"seconds": fastest_seconds(work[0], threads), "deviation": deviation}
    print(json.dumps(answer), flush=True)
