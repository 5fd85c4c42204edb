"""``va100 run``: words, streams, statuses and reports, with shell scripts for programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from va100.cli import environment, process, run, target
from va100.cli.main import main

REPORT = [
    {"type": "meta", "version": 1, "model": "A100-SXM4-80GB", "gpu_count": 1},
    {
        "type": "kernel",
        "kernel": "_Z5saxpyifPKfPf",
        "grid": [64, 1, 1],
        "block": [256, 1, 1],
        "count": 2,
        "total_s": 5e-6,
        "bound_by": "DRAM bandwidth",
        "occupancy": 1.0,
    },
    {"type": "event", "kind": "kernel", "name": "saxpy", "start_ns": 0, "end_ns": 2500},
    {"type": "end"},
]


@pytest.fixture(autouse=True)
def built(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "is_built", lambda: True)
    for name in ("VA100_REPORT", "VA100_MODEL", "VA100_GPUS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VA100_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def program(tmp_path):
    """A program that does what a shell is told, then leaves a report."""

    def write(body, report=REPORT):
        text = "".join(json.dumps(entry) + "\n" for entry in report)
        path = tmp_path / "program"
        path.write_text(f"#!/bin/sh\ncat > \"$VA100_REPORT\" <<'END'\n{text}END\n{body}\n")
        path.chmod(0o755)
        return str(path)

    return write


class TestSpelledOut:
    @pytest.mark.parametrize(
        ("words", "spelled"),
        [
            ("specs --json", "specs --json"),
            ("run a.cu", "run a.cu"),
            ("run --json a.cu", "run --json=- a.cu"),
            ("run --json=f a.cu", "run --json=f a.cu"),
            ("run a.cu --json", "run a.cu --json"),
            ("run --model a100 --gpus 2 a.cu -x", "run --model=a100 --gpus=2 a.cu -x"),
            ("run a.cu --quiet --timeline t -- -x", "run --quiet --timeline=t a.cu -x"),
            ("run a.cu --json -- --json", "run --json=- a.cu --json"),
            ("run -- a.cu -x", "run a.cu -x"),
            ("run a.cu -- -- -x", "run a.cu -- -x"),
            ("run git log -- file", "run git log -- file"),
            ("run --nvcc-flags -O3 a.cu", "run --nvcc-flags=-O3 a.cu"),
            ("run --model", "run --model"),
            ("run --quiet", "run --quiet"),
            ("run", "run"),
        ],
    )
    def test_words(self, words, spelled):
        assert run.spelled_out(words.split()) == spelled.split()


class TestRun:
    def test_output_status_and_table(self, program, capfd):
        assert main(["run", program("echo hello; exit 3")]) == 3
        out, err = capfd.readouterr()
        assert out == "hello\n"
        assert "saxpy" in err
        assert "DRAM bandwidth" in err
        assert "first estimate" in err

    def test_arguments_pass_unchanged(self, program, capfd):
        path = program('printf "%s|" "$@"')
        assert main(["run", "--quiet", path, "--n", "5", "a b", "--", "-x", ""]) == 0
        assert capfd.readouterr().out == "--n|5|a b|--|-x||"

    def test_environment(self, program, capfd):
        path = program('echo "$VA100_MODEL $VA100_GPUS"; echo "$LD_LIBRARY_PATH"')
        assert main(["run", "--quiet", "--model", "pcie40", "--gpus", "4", path]) == 0
        lines = capfd.readouterr().out.splitlines()
        assert lines[0] == "A100-PCIE-40GB 4"
        assert lines[1].split(":")[0].endswith("_native")

    def test_json_alone_has_standard_output_for_itself(self, program, capfd):
        assert main(["run", "--json", program("echo hello")]) == 0
        out, err = capfd.readouterr()
        assert json.loads(out)["kernels"][0]["name"] == "saxpy"
        assert err == "hello\n"

    def test_files(self, program, tmp_path, capfd):
        report, trace = tmp_path / "r.json", tmp_path / "t.json"
        words = ["run", "--quiet", f"--json={report}", "--timeline", str(trace)]
        assert main([*words, program("true")]) == 0
        assert json.loads(report.read_text())["kernels"][0]["count"] == 2
        slices = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
        assert slices[0]["dur"] == 2.5
        assert capfd.readouterr() == ("", "")

    def test_signal_becomes_the_status_a_shell_gives(self, program, capfd):
        assert main(["run", program("kill -ABRT $$")]) == 128 + signal.SIGABRT
        assert "SIGABRT" in capfd.readouterr().err

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_signals_reach_the_program(self, program, number):
        script = (
            "import sys; from va100.cli import environment; from va100.cli.main import main;"
            "environment.is_built = lambda: True; sys.exit(main(['run', sys.argv[1]]))"
        )
        body = 'trap "echo told; exit 9" TERM HUP; echo ready; while :; do read -r line; done'
        started = subprocess.Popen(
            [sys.executable, "-c", script, program(body)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert started.stdout.readline() == "ready\n"
        started.send_signal(number)
        started.stdin.write("wake\n")
        out, _ = started.communicate()
        assert (out, started.returncode) == ("told\n", 9)

    def test_a_signal_while_the_program_starts_reaches_it(self, program, monkeypatch, capfd):
        real = process.subprocess.Popen
        silent, writer = os.pipe()

        def start(*args, **options):
            child = real(*args, stdin=silent, **options)
            os.kill(os.getpid(), signal.SIGTERM)
            return child

        monkeypatch.setattr(process.subprocess, "Popen", start)
        before = signal.getsignal(signal.SIGTERM)
        assert main(["run", program("read -r line")]) == 128 + signal.SIGTERM
        os.close(silent)
        os.close(writer)
        assert "SIGTERM" in capfd.readouterr().err
        assert signal.getsignal(signal.SIGTERM) is before

    def test_broken_report_hides_nothing(self, tmp_path, capfd):
        path = tmp_path / "program"
        path.write_text('#!/bin/sh\nprintf "x\\ny\\n" > "$VA100_REPORT"\nexit 4\n')
        path.chmod(0o755)
        assert main(["run", str(path)]) == 4
        assert "no kernel was launched" in capfd.readouterr().err

    def test_no_report(self, tmp_path, capfd):
        path = tmp_path / "program"
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        assert main(["run", str(path)]) == 0
        assert "no kernel was launched" in capfd.readouterr().err

    def test_own_report_file_is_kept(self, program, tmp_path, monkeypatch):
        monkeypatch.setenv("VA100_REPORT", str(tmp_path / "mine"))
        assert main(["run", "--quiet", program("true")]) == 0
        assert (tmp_path / "mine").read_text().count("\n") == len(REPORT)

    def test_astray_option_is_mentioned(self, program, capfd):
        assert main(["run", program("true"), "--timeline", "x"]) == 0
        assert "--timeline stands after" in capfd.readouterr().err

    def test_python_script(self, tmp_path, capfd, monkeypatch):
        script = tmp_path / "script.py"
        script.write_text(
            "import sys\nfrom pathlib import Path\n"
            "print(__name__, sys.argv[1:], Path(sys.path[0]) == Path(__file__).parent)\n"
            "sys.exit(5)\n"
        )
        stand_in = tmp_path / "boot.py"
        stand_in.write_text(
            "import va100.cli.boot as boot\nboot.library = lambda: None\nboot.main()\n"
        )
        monkeypatch.setattr(
            run.target,
            "command",
            lambda target, arguments, flags, settings: [
                run.sys.executable,
                str(stand_in),
                target,
                *arguments,
            ],
        )
        assert main(["run", "--quiet", str(script), "--n", "1"]) == 5
        assert capfd.readouterr().out == "__main__ ['--n', '1'] True\n"

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (["run", "no/such/file.cu"], "does not exist"),
            (["run", "/"], "is a directory"),
            (["run", "--model", "h100", "x"], "no A100 model"),
            (["run", "--model", "h100", "x"], "A100-PCIE-40GB, A100-PCIE-80GB, A100-SXM4-40GB"),
            (["run", "--model", "a100", "x"], "leaves a choice"),
            (["run"], "no TARGET was named"),
        ],
    )
    def test_refusals(self, words, told, capsys):
        assert main(words) == 1
        assert told in capsys.readouterr().err

    @pytest.mark.parametrize("gpus", ["0", "17", "many"])
    def test_impossible_count_of_gpus(self, gpus, capsys):
        with pytest.raises(SystemExit) as ended:
            main(["run", "--gpus", gpus, "x"])
        assert ended.value.code == 2
        assert "1 to 16" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "words",
        [
            ["run", "--nvcc-flags", "-D'x"],
            ["profile", "--nvcc-flags", "-D'x"],
            ["check", "--nvcc-flags=-D'x"],
            ["debug", "--nvcc-flags=-D'x"],
        ],
    )
    def test_unbalanced_quotes(self, words, capsys):
        with pytest.raises(SystemExit) as ended:
            main([*words, "x.cu"])
        assert ended.value.code == 2
        assert "quotation" in capsys.readouterr().err

    @pytest.mark.parametrize("option", ["--json", "--timeline"])
    def test_a_file_that_cannot_be_written_is_found_out_before_the_run(
        self, option, program, tmp_path, capsys
    ):
        ran = tmp_path / "ran"
        assert main(["run", f"{option}=/no/such/folder/x", program(f"touch {ran}")]) == 1
        assert "/no/such/folder/x" in capsys.readouterr().err
        assert not ran.exists()

    @pytest.mark.parametrize("name", ["x.cu", "x.py"])
    def test_source_that_may_not_be_read(self, name, tmp_path, monkeypatch, capsys):
        source = tmp_path / name
        source.write_text("")
        monkeypatch.setattr(target.os, "access", lambda *_: False)
        assert main(["run", str(source)]) == 1
        assert f"{source} may not be read" in capsys.readouterr().err

    def test_a_traceback_begins_in_the_script(self, tmp_path, capfd, monkeypatch):
        script = tmp_path / "script.py"
        script.write_text("def inner():\n    raise ValueError('why')\ninner()\n")
        stand_in = tmp_path / "boot.py"
        stand_in.write_text(
            "import va100.cli.boot as boot\nboot.library = lambda: None\n"
            "boot._OURS = {*boot._OURS, __file__}\nboot.main()\n"
        )
        monkeypatch.setattr(
            run.target, "command", lambda *_: [run.sys.executable, str(stand_in), str(script)]
        )
        assert main(["run", "--quiet", str(script)]) == 1
        told = capfd.readouterr().err.splitlines()
        assert told[1].endswith('script.py", line 3, in <module>')
        assert told[-1] == "ValueError: why"

    def test_without_the_native_core(self, monkeypatch, capsys):
        monkeypatch.setattr(environment, "is_built", lambda: False)
        assert main(["run", "x.cu"]) == 1
        assert "make setup" in capsys.readouterr().err
