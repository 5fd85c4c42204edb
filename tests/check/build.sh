#!/bin/sh
# Compile the planted kernels to the PTX that the tests run; needs nvcc.  Paths are cut to names.
set -e
cd "$(dirname "$0")"
for source in *.cu; do
  nvcc -ptx -arch=compute_80 -lineinfo -o "${source%.cu}.ptx" "$source"
  sed -i -e 's|"/[^"]*/\([^"/]*\)"|"\1"|' -e '/^\/\/ \(Compiler Build ID\|Cuda\|Based\)/d' "${source%.cu}.ptx"
done
