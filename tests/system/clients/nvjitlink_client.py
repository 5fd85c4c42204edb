"""Whose nvJitLink a library that asks for it by name would get."""

import ctypes

for version in (12, 13):
    library = ctypes.CDLL(f"libnvJitLink.so.{version}")
    print(version, ctypes.c_int.in_dll(library, "va100_nvjitlink_links_nothing").value)
