"""A program that va100 did not start itself compiles machine code, and gets what runs."""

import subprocess
import sys

from cuda.core import Device, LaunchConfig, Program, launch

SOURCE = 'extern "C" __global__ void nothing() {}'

if len(sys.argv) == 1:
    sys.exit(subprocess.run([sys.executable, __file__, "child"], check=False).returncode)
device = Device()
device.set_current()
stream = device.create_stream()
code = Program(SOURCE, "c++").compile("cubin")
launch(stream, LaunchConfig(grid=1, block=32), code.get_kernel("nothing"))
stream.sync()
print("ran")
