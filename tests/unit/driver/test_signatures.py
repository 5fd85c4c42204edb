"""Own declarations of CUDA's types against NVIDIA's headers, where those are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HEADERS = Path("/usr/local/cuda/include")

PAIRS = {
    "CUDA_MEMCPY2D": "CUDA_MEMCPY2D",
    "CUDA_MEMCPY3D": "CUDA_MEMCPY3D",
    "CUDA_MEMCPY3D_PEER": "CUDA_MEMCPY3D_PEER",
    "CUDA_ARRAY_DESCRIPTOR": "CUDA_ARRAY_DESCRIPTOR",
    "CUDA_ARRAY3D_DESCRIPTOR": "CUDA_ARRAY3D_DESCRIPTOR",
    "CUDA_RESOURCE_DESC": "CUDA_RESOURCE_DESC",
    "CUDA_RESOURCE_VIEW_DESC": "CUDA_RESOURCE_VIEW_DESC",
    "CUDA_TEXTURE_DESC": "CUDA_TEXTURE_DESC",
    "CUlaunchConfig": "CUlaunchConfig",
    "CUlaunchAttribute": "CUlaunchAttribute",
    "CUmemPoolProps": "CUmemPoolProps",
    "CUmemLocation": "CUmemLocation",
    "CUmemAccessDesc": "CUmemAccessDesc",
    "CUdevprop": "CUdevprop",
    "CUuuid": "CUuuid",
    "CUstreamAttrValue": "CUlaunchAttributeValue",
    "cudaDeviceProp": "cudaDeviceProp",
    "cudaPointerAttributes": "cudaPointerAttributes",
    "cudaFuncAttributes": "cudaFuncAttributes",
    "cudaLaunchConfig_t": "cudaLaunchConfig_t",
    "cudaMemcpy3DParms": "cudaMemcpy3DParms",
    "cudaChannelFormatDesc": "cudaChannelFormatDesc",
    "cudaResourceDesc": "cudaResourceDesc",
    "cudaTextureDesc": "cudaTextureDesc",
}
FIELDS = {
    "CUDA_MEMCPY2D": {"dst_type": "dstMemoryType", "height": "Height", "src_pitch": "srcPitch"},
    "CUDA_MEMCPY3D": {"dst_z": "dstZ", "dst_device": "dstDevice", "depth": "Depth"},
    "CUDA_ARRAY3D_DESCRIPTOR": {"channels": "NumChannels", "flags": "Flags"},
    "CUDA_RESOURCE_DESC": {"linear.bytes": "res.linear.sizeInBytes", "flags": "flags",
                           "pitched.pitch": "res.pitch2D.pitchInBytes"},
    "CUDA_TEXTURE_DESC": {"border": "borderColor", "mipmap_most": "maxMipmapLevelClamp"},
    "CUDA_RESOURCE_VIEW_DESC": {"last_layer": "lastLayer"},
    "cudaResourceDesc": {"linear.bytes": "res.linear.sizeInBytes",
                         "pitched.pitch": "res.pitch2D.pitchInBytes"},
    "cudaTextureDesc": {"border": "borderColor", "normalized": "normalizedCoords",
                        "seamless_cubemap": "seamlessCubemap"},
    "CUlaunchConfig": {"stream": "hStream", "attributes": "attrs", "attribute_count": "numAttrs"},
    "CUlaunchAttribute": {"value": "value"},
    "CUmemPoolProps": {"location": "location", "max_size": "maxSize", "usage": "usage"},
    "cudaDeviceProp": {
        n: n
        for n in "totalGlobalMem maxGridSize major multiProcessorCount surfaceAlignment l2CacheSize"
        " sharedMemPerBlockOptin reservedSharedMemPerBlock unifiedFunctionPointers reserved".split()
    },
    "cudaFuncAttributes": {"registers": "numRegs", "max_dynamic_shared":
                           "maxDynamicSharedSizeBytes"},
    "cudaLaunchConfig_t": {"shared_bytes": "dynamicSmemBytes", "attribute_count": "numAttrs"},
    "cudaMemcpy3DParms": {"dst_pos": "dstPos", "extent": "extent", "kind": "kind"},
}  # fmt: skip


def program(main_includes: str, pairs: dict[str, str]) -> str:
    lines = [main_includes, "#include <cstdio>", "#include <cstddef>", "int main() {"]
    for ours, name in pairs.items():
        lines.append(f'  std::printf("{ours} %zu\\n", sizeof({name}));')
    for ours, fields in FIELDS.items():
        for own, theirs in fields.items():
            field = own if pairs is OWN else theirs
            lines.append(f'  std::printf("{ours}.{own} %zu\\n", offsetof({pairs[ours]}, {field}));')
    return "\n".join([*lines, "}"])


OWN = {name: name for name in PAIRS}


def measured(tmp_path: Path, name: str, text: str, *flags: str) -> list[str]:
    source, binary = tmp_path / f"{name}.cpp", tmp_path / name
    source.write_text(text)
    subprocess.run(["g++", "-w", "-std=c++17", str(source), "-o", str(binary), *flags], check=True)
    return subprocess.run([str(binary)], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )


@pytest.mark.skipif(
    not (HEADERS / "cuda.h").exists() or not shutil.which("g++"), reason="needs CUDA's headers, g++"
)
def test_layouts_are_those_of_the_headers(tmp_path):
    version = re.search(r"#define CUDA_VERSION (\d+)", (HEADERS / "cuda.h").read_text())
    major = int(version[1]) // 1000
    native = ROOT / "native"
    own = measured(
        tmp_path, "own", program('#include "runtime_types.h"', OWN),
        f"-DVA100_CUDART_MAJOR={major}", f"-I{native / 'runtime'}", f"-I{native / 'driver'}",
    )  # fmt: skip
    theirs = measured(
        tmp_path, "theirs",
        program("#include <cuda.h>\n#include <cuda_runtime_api.h>", PAIRS), f"-I{HEADERS}",
    )  # fmt: skip
    assert own == theirs
