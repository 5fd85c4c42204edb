"""The CMake toolchain file: an unchanged CUDA project configures, builds and tests with it.

``va100 env --cmake`` writes it, with this machine's paths in it, and prints where it is.  What it
sets is what a project leaves open: which nvcc, code for an A100 with its PTX, the shared runtime,
and what CTest starts tests with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from va100.cli.environment import additions
from va100.cli.toolchain import find_compiler
from va100.config import Settings
from va100.gpu.native import LIBRARY_NAME, NATIVE_DIR

FILE_NAME: Final = "va100.cmake"
_PYTHON: Final = ("VA100_PYTHON", "VA100_LIBPYTHON")
"""What a program without Python needs; all else a test has from whoever starts it."""

# In CMake before 3.29 the emulator stands before every test; from then on only where one builds
# for another system, and a launcher stands before every test.
_TEXT: Final = """\
# Written by `va100 env --cmake` for this machine; write it anew rather than edit or commit it.
#   cmake -B build --toolchain "$(va100 env --cmake)"

# A project's own choices stand, so long as some code of theirs is PTX for 8.0 or less.
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  set(CMAKE_CUDA_COMPILER @NVCC@)
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES 80)
endif()
if(NOT DEFINED CMAKE_CUDA_RUNTIME_LIBRARY)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
endif()

# Lines of source in what faults and findings tell.
string(APPEND CMAKE_CUDA_FLAGS_INIT " -lineinfo")

# NVIDIA's static runtime and its driver's stub only work with NVIDIA's driver.
set(CUDA_CUDART @FOLDER@/libcudart.so CACHE FILEPATH "the CUDA runtime of va100")
set(CUDA_cudart_LIBRARY @FOLDER@/libcudart.so CACHE FILEPATH "the CUDA runtime of va100")
set(CUDA_cuda_driver_LIBRARY @FOLDER@/libcuda.so CACHE FILEPATH "the CUDA driver of va100")
foreach(kind EXE SHARED MODULE)
  string(APPEND CMAKE_${kind}_LINKER_FLAGS_INIT " \\"-L@FOLDER@\\"")
endforeach()
list(APPEND CMAKE_BUILD_RPATH @NATIVE@)

# What every test finds in its environment, and so what it starts.
set(_va100_launcher "${CMAKE_COMMAND}" -E env
@VARIABLES@)
if(CMAKE_VERSION VERSION_LESS 3.25)
  list(APPEND _va100_launcher "LD_LIBRARY_PATH=@FOLDERS@:$ENV{LD_LIBRARY_PATH}")
else()
  list(APPEND _va100_launcher --modify "LD_LIBRARY_PATH=path_list_prepend:@FOLDERS@")
endif()
if(CMAKE_VERSION VERSION_LESS 3.29)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${_va100_launcher})
else()
  set(CMAKE_TEST_LAUNCHER ${_va100_launcher})
endif()
"""


def toolchain_file(settings: Settings, chosen: Mapping[str, str]) -> Path:
    """Write the file, or find it written before.

    Parameters
    ----------
    chosen : mapping
        Variables that tests are to find whatever their environment says.

    Raises
    ------
    SetupError
        There is no nvcc, or no host compiler for it.
    """
    compiler = find_compiler(settings)
    variables = {name: value for name, value in additions(settings).items() if name in _PYTHON}
    variables |= chosen
    facts = f"{compiler.path}\n{compiler.runtime_name}\n{NATIVE_DIR}\n{sorted(variables.items())}"
    key = hashlib.sha256((_TEXT + facts).encode()).hexdigest()[:16]
    folder = (settings.cache_dir / "cmake" / key).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for name, target in (("libcudart.so", compiler.runtime_name), ("libcuda.so", LIBRARY_NAME)):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(NATIVE_DIR / target)
    path = folder / FILE_NAME
    path.write_text(toolchain_text(compiler.path, folder, variables), encoding="utf-8")
    return path


def toolchain_text(nvcc: Path, folder: Path, variables: Mapping[str, str]) -> str:
    """Spell the file.

    Parameters
    ----------
    folder : Path
        Where ``libcuda.so`` and ``libcudart.so`` lead to ours.
    """
    spelled = [f"  {_literal(f'{name}={value}')}" for name, value in variables.items()]
    words = {
        "@NVCC@": _literal(str(nvcc)),
        "@FOLDER@/libcudart.so": _literal(str(folder / "libcudart.so")),
        "@FOLDER@/libcuda.so": _literal(str(folder / "libcuda.so")),
        "@FOLDER@": str(folder),
        "@FOLDERS@": str(NATIVE_DIR),
        "@NATIVE@": _literal(str(NATIVE_DIR)),
        "@VARIABLES@": "\n".join(spelled),
    }
    text = _TEXT
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    return text


def _literal(text: str) -> str:
    """Spell a word so that CMake takes nothing in it for its own, whatever it holds."""
    return f"[==[{text}]==]"
