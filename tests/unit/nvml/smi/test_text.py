"""How readings are printed."""

from __future__ import annotations

import pytest

from va100.errors import NvmlError
from va100.nvml.smi import text


def refusing(code):
    def read():
        raise NvmlError(code=code, function="nvmlDeviceGetFanSpeed", text="")

    return read


class TestShown:
    @pytest.mark.parametrize(
        ("code", "words"),
        [
            (3, "N/A"),
            (4, "Insufficient Permissions"),
            (15, "GPU is lost"),
            (26, "Requested functionality has been deprecated"),
            (999, "Unknown Error"),
        ],
    )
    def test_a_refusal_stands_in_the_readings_place(self, code, words):
        assert text.shown(refusing(code)) == words
        assert text.bracketed(refusing(code)) == f"[{words}]"

    def test_a_reading(self):
        assert text.shown(lambda: "33 C") == text.bracketed(lambda: "33 C") == "33 C"


class TestUnits:
    @pytest.mark.parametrize(
        ("size_bytes", "printed"), [(0, "0"), (1, "0"), (1 << 19, "1"), ((1 << 19) - 1, "0")]
    )
    def test_mebibytes_are_the_nearest(self, size_bytes, printed):
        assert text.mebibytes(size_bytes) == printed

    def test_versions_of_cuda(self):
        assert text.cuda_version(13000) == "13.0"
        assert text.cuda_version(12080) == "12.8"

    def test_watts_have_two_digits(self):
        assert text.watts(49.679) == "49.68"
        assert text.watts(400) == "400.00"


class TestTimes:
    def test_milliseconds_of_csv(self):
        assert text.csv_time(1_790_000_000.25).endswith(".250")
