# A peer: sums and scans of CuPy. A request is a line: the name, the number of elements, of samples, and of operations in a sample. The answer
# has the nanoseconds of an operation, once per sample.
import sys
import time

import cupy

arrays = {}


def measure(name, size, samples, batch):
    if size not in arrays:
        arrays[size] = cupy.random.random(size, dtype=cupy.float32)
    a = arrays[size]
    operation = {"sum": a.sum, "scan": lambda: cupy.cumsum(a)}[name]
    figures = []
    for sample in range(samples + 1):
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        for _ in range(batch):
            operation()
        cupy.cuda.Device().synchronize()
        figures.append((time.perf_counter() - begin) * 1e9 / batch)
    return figures[1:]


for line in sys.stdin:
    name, size, samples, batch = line.split()
    print(*measure(name, int(size), int(samples), int(batch)), flush=True)
