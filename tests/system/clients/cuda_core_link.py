"""cuda.core links two PTX texts and runs what came of them; then it meets what is missing."""

import sys
from pathlib import Path

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, ObjectCode, launch

texts = [Path(name).read_bytes() for name in sys.argv[1:]]
device = Device()
device.set_current()
first, second = (ObjectCode.from_ptx(text, name=f"text{i}") for i, text in enumerate(texts))
kernel = Linker(first, second, options=LinkerOptions(arch="sm_80")).link("cubin").get_kernel("k")
stream = device.create_stream()
buffer = device.memory_resource.allocate(4, stream=stream)
launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer)
stream.sync()
result = np.zeros(1, np.uint32)
driver.cuMemcpyDtoH(result.ctypes.data, int(buffer.handle), 4)
print(result[0])
linker = Linker(first, options=LinkerOptions(arch="sm_80"))
try:
    linker.link("cubin")
except Exception as error:  # noqa: BLE001  whichever the client makes of it
    print(type(error).__name__, linker.get_error_log().splitlines()[0])
