"""Images: containers told apart, PTX found in them, damage refused; Python and native alike."""

from __future__ import annotations

import contextlib
import ctypes
import random
import shutil
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.cuda_client import FakeCompiler, context
from va100.driver.images import ImageKind, entries, expand, ptx_text, sniff
from va100.errors import ImageError
from va100.gpu.native import library

TEXT = ".version 8.0\n.target sm_80\n.address_size 64\n" + "// filler, filler, filler\n" * 40


def lz4_literals(data: bytes) -> bytes:
    """A valid LZ4 block without a match."""
    assert len(data) >= 15
    rest, lengths = len(data) - 15, b""
    while rest >= 255:
        lengths, rest = lengths + b"\xff", rest - 255
    return b"\xf0" + lengths + bytes([rest]) + data


def zstd_raw(data: bytes) -> bytes:
    """A valid zstd frame of one raw block."""
    head = struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data))
    return head + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def entry(text: str, *, arch: int = 80, kind: int = 1, packing: str = "") -> bytes:
    raw = text.encode() + b"\0"
    packed = {"": bytes, "lz4": lz4_literals, "zstd": zstd_raw}[packing](raw)
    payload = packed.ljust(-(-len(packed) // 8) * 8, b"\0")
    flags = {"": 0, "lz4": 0x2000, "zstd": 0x8000}[packing] | 1
    header = struct.pack(
        "<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(payload), len(packed) if packing else 0, 0,
        0, 8, arch, 0, 0, flags, 0, len(raw) if packing else 0,
    )  # fmt: skip
    return header + payload


def fatbin(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def native_ptx(image: bytes) -> tuple[int, str]:
    """What the native driver finds: result, and the text it handed on."""
    fake = FakeCompiler(())
    with fake.registered(), context() as cuda:
        code = cuda.code("ModuleLoadData", ctypes.byref(ctypes.c_void_p()), image)
        return code, fake.images[0].decode() if fake.images else ""


class TestSniff:
    @pytest.mark.parametrize(
        ("image", "kind"),
        [
            (TEXT.encode(), ImageKind.PTX),
            (fatbin(), ImageKind.FATBIN),
            (b"\xb1\x43\x62\x46" + bytes(20), ImageKind.WRAPPER),
            (b"\x7fELF" + bytes(60), ImageKind.ELF),
            (b"MZ", ImageKind.UNKNOWN),
            (b"", ImageKind.UNKNOWN),
        ],
    )
    def test_kinds(self, image, kind):
        assert sniff(image) is kind


class TestPtx:
    @pytest.mark.parametrize("packing", ["", "lz4", "zstd"])
    def test_every_packing(self, packing):
        image = fatbin(entry(TEXT, packing=packing))
        assert ptx_text(image) == TEXT
        assert native_ptx(image) == (0, TEXT)

    def test_the_newest_not_beyond_80_is_taken(self):
        parts = [entry(TEXT + f"// {a}\n", arch=a) for a in (75, 80, 50, 90)]
        image = fatbin(entry("code", kind=2), *parts)
        assert ptx_text(image).endswith("// 80\n")
        assert native_ptx(image)[1].endswith("// 80\n")

    @pytest.mark.parametrize(
        ("image", "word"),
        [
            (fatbin(entry("code", kind=2)), "machine code only"),
            (fatbin(entry(TEXT, arch=90)), "compute_90"),
            (b"\x7fELF" + bytes(60), "machine code only"),
        ],
    )
    def test_what_cannot_run_is_refused_with_a_hint(self, image, word, capfd):
        with pytest.raises(ImageError, match=word) as refused:
            ptx_text(image)
        assert "compute_80" in refused.value.hint
        assert native_ptx(image)[0] == 209
        assert word in capfd.readouterr().err

    def test_a_fatbin_cut_short_is_refused(self):
        with pytest.raises(ImageError, match="cut short"):
            entries(fatbin(entry(TEXT))[:-8])


class TestDamage:
    """Whatever the bytes, an answer: never a crash, never bytes beyond the promised size."""

    @given(st.randoms(use_true_random=False), st.sampled_from(["lz4", "zstd"]))
    def test_changed_bytes(self, chance: random.Random, packing: str):
        (good,) = entries(fatbin(entry(TEXT, packing=packing)))
        data = bytearray(good.payload)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        cut = data[: chance.randint(1, len(data))]
        for payload in (data, cut):
            bad = type(good)(
                is_ptx=True, arch=80, compression=packing, raw_bytes=good.raw_bytes,
                payload=bytes(payload),
            )  # fmt: skip
            with contextlib.suppress(ImageError):
                assert len(expand(bad)) <= good.raw_bytes

    @given(st.binary(max_size=300))
    def test_any_bytes_after_the_magic(self, tail):
        image = struct.pack("<I", 0xFD2FB528) + tail
        out = ctypes.create_string_buffer(4096)
        lib = library()
        lib.va_expand_zstd.restype = ctypes.c_int64
        lib.va_expand_zstd.argtypes = (
            ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
        )  # fmt: skip
        assert lib.va_expand_zstd(image, len(image), out, 4096) <= 4096


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
class TestNvcc:
    @pytest.mark.parametrize("mode", ["none", "speed", "size"])
    def test_what_nvcc_packs_comes_out_whole(self, tmp_path, mode):
        source = tmp_path / "k.cu"
        body = "\n".join(f"  x[{i}] = x[{i + 1}] * {i}.5f + y;" for i in range(80))
        source.write_text(f"__global__ void k(float *x, float y) {{\n{body}\n}}\n")
        for option, name in (("-ptx", "k.ptx"), ("-fatbin", "k.fatbin")):
            command = ["nvcc", option, "-arch=compute_80", str(source), "-o", str(tmp_path / name)]
            more = [f"-compress-mode={mode}"] if option == "-fatbin" else []
            subprocess.run([*command, *more], check=True)

        def code(text):
            lines = ("".join(line.split()) for line in text.splitlines())
            return [line for line in lines if line and not line.startswith("//")]

        packed = (tmp_path / "k.fatbin").read_bytes()
        assert code(ptx_text(packed)) == code((tmp_path / "k.ptx").read_text())
