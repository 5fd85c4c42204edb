"""The debugger's command line: what people type when a program has stopped, and what they see."""

from __future__ import annotations

import cmd
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, TextIO

from va100.debug import views
from va100.debug.breakpoints import Breakpoint, read_place
from va100.debug.command_help import HELP
from va100.debug.debugger import Debugger, Pace, Stop
from va100.debug.expression import evaluate
from va100.debug.names import Names
from va100.debug.types import text_of
from va100.work import WARP_SIZE

PROMPT: Final = "(va100) "
ALIASES: Final = {
    "b": "break", "tb": "tbreak", "r": "run", "c": "continue", "cont": "continue", "s": "step",
    "n": "next", "si": "stepi", "ni": "nexti", "fin": "finish", "p": "print", "i": "info",
    "l": "list", "bt": "backtrace", "where": "backtrace", "q": "quit", "exit": "quit",
    "d": "delete", "h": "help", "t": "thread", "dis": "disassemble",
}  # fmt: skip
"""Short forms of commands."""
NOT_STOPPED: Final = "no kernel has stopped: set a breakpoint, then `run`"
_STYLES: Final = "xduftc"
_FOCUS: Final = re.compile(r"\b(thread|block|lane|warp)\s*(\([^)]*\)|\d+(?:,\d+)*)")


class Prompt(cmd.Cmd):
    """Reads commands and obeys them until the program is to go on."""

    prompt = PROMPT

    def __init__(
        self, read: Callable[[str], str | None], out: TextIO, leave: Callable[[], None]
    ) -> None:
        super().__init__(stdout=out)
        self.debugger = Debugger(self.stopped, self.say)
        self._read = read
        self._leave = leave
        self._stop: Stop | None = None
        self._repeated = ""

    def say(self, text: str) -> None:
        """Print a line."""
        self.stdout.write(text + "\n")
        self.stdout.flush()

    def begin(self) -> None:
        """Take commands before the program has launched anything."""
        self.say("The program is about to load its kernels. `help` lists commands, `run` goes on.")
        self._loop()

    def stopped(self, stop: Stop) -> None:
        """Take commands where the program has stopped."""
        self._stop = stop
        if stop.reason:
            self.say(f"\n{stop.reason}")
        self.say(views.place(stop.moment, stop.lane, has_reason=bool(stop.reason)))
        self._loop()
        self._stop = None

    def look(self, stop: Stop) -> None:
        """Take commands about a core dump, to the last one."""
        self.stopped(stop)

    def finish(self) -> None:
        """The program has ended: tell of breakpoints in vain."""
        for missed in self.debugger.unfound():
            self.say(f"breakpoint {missed.number} was never set: no code has {missed.where}")

    def _loop(self) -> None:
        while True:
            line = self._read(self.prompt)
            if line is None:
                self.debugger.go(Pace.RUN, None)
                return
            if self.onecmd(line):
                return

    # ------------------------------------------------------------ cmd.Cmd

    def onecmd(self, line: str) -> bool:
        """Obey one line; whether the program is to go on."""
        line = line.strip()
        if line.startswith("#"):
            return False
        line = line or self._repeated
        word, rest = re.match(r"([A-Za-z]*)(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
        name = ALIASES.get(word, word)
        if word and not hasattr(self, f"do_{name}"):
            found = [n[3:] for n in self.get_names() if n.startswith(f"do_{word}")]
            if len(found) > 1:
                self.say(f"{word}: {', '.join(sorted(found))}?")
                return False
            name = found[0] if found else name
        self._repeated = line if name in _REPEATABLE else ""
        try:
            return bool(super().onecmd(f"{name} {rest.lstrip()}" if name else line))
        except (LookupError, ValueError) as error:
            self.say(str(error.args[0]) if error.args else str(error))
            return False

    def emptyline(self) -> bool:
        """Nothing to repeat."""
        return False

    def default(self, line: str) -> None:
        """Refuse a command that is none."""
        self.say(f"{line.split(maxsplit=1)[0]!r} is no command; `help` lists them")

    def do_help(self, arg: str) -> None:
        """List the commands, or explain one."""
        name = ALIASES.get(arg.strip(), arg.strip())
        if name and name not in HELP:
            raise LookupError(f"{name!r} is no command; `help` lists them")
        for usage, text in [HELP[name]] if name else HELP.values():
            self.say(f"{usage}\n    {text}")

    def _here(self) -> Stop:
        if self._stop is None:
            raise ValueError(NOT_STOPPED)
        return self._stop

    def _names(self) -> Names:
        stop = self._here()
        return Names(stop.moment, stop.lane)

    # ------------------------------------------------------------ going on

    def _go(self, pace: Pace) -> bool:
        stop = self._here()
        self._require_alive()
        if stop.fault is not None:
            self.say("[the launch ends with its fault]")
        self.debugger.go(pace, stop)
        return True

    def _require_alive(self) -> None:
        if self._stop is not None and self._stop.is_dead:
            raise ValueError("this is a core dump: nothing goes on from here; `quit` ends")

    def do_run(self, text: str) -> bool:
        """Let the program go on to the first breakpoint."""
        del text
        if self._stop is not None:
            raise ValueError("it runs already; `continue` goes on")
        self.debugger.go(Pace.RUN, None)
        return True

    def do_continue(self, text: str) -> bool:
        """Go on to the next breakpoint."""
        del text
        self._require_alive()
        self.debugger.go(Pace.RUN, self._stop)
        return True

    def do_step(self, text: str) -> bool:
        """Go on to another line of the source, into calls too."""
        del text
        return self._go(Pace.STEP)

    def do_next(self, text: str) -> bool:
        """Go on to another line of the source, calls in one go."""
        del text
        return self._go(Pace.NEXT)

    def do_stepi(self, text: str) -> bool:
        """Execute one PTX instruction of the focused thread's lanes."""
        del text
        return self._go(Pace.STEP_INSTRUCTION)

    def do_nexti(self, text: str) -> bool:
        """Execute one PTX instruction, a call in one go."""
        del text
        return self._go(Pace.NEXT_INSTRUCTION)

    def do_finish(self, text: str) -> bool:
        """Go on until the function has returned."""
        del text
        if not self._here().moment.depth:
            raise ValueError("this is the kernel itself: it has no caller; `continue` goes on")
        return self._go(Pace.FINISH)

    def do_quit(self, text: str) -> bool:
        """End the program and the debugger."""
        del text
        self._leave()
        return True

    # ------------------------------------------------------------ where to stop

    def do_break(self, text: str) -> None:
        """Stop at a kernel or function, FILE:LINE, LINE or ptx:LINE, where the condition holds."""
        self._add(text, once=False)

    def do_tbreak(self, text: str) -> None:
        """As break, for one stop."""
        self._add(text, once=True)

    def _add(self, text: str, *, once: bool) -> None:
        where, condition = read_place(text)
        made = self.debugger.add(where, condition, once=once)
        found = ""
        if self._stop is not None and not made.places(self._stop.moment.module):
            found = "; no code that is loaded has it, perhaps some will"
        self.say(f"Breakpoint {made.number}: {_described(made)}{found}")

    def do_delete(self, text: str) -> None:
        """Forget breakpoints, all when none is named."""
        for number in self._numbers(text):
            self.debugger.delete(number)

    def do_disable(self, text: str) -> None:
        """Keep breakpoints but do not stop at them."""
        self._enable(text, on=False)

    def do_enable(self, text: str) -> None:
        """Stop at breakpoints again."""
        self._enable(text, on=True)

    def _enable(self, text: str, *, on: bool) -> None:
        for number in self._numbers(text):
            self.debugger.enable(number, on=on)

    def _numbers(self, text: str) -> list[int]:
        known = self.debugger.breakpoints
        if not text.split():
            return list(known)
        for word in text.split():
            if not word.isdecimal() or int(word) not in known:
                raise LookupError(f"there is no breakpoint {word}")
        return [int(word) for word in text.split()]

    def do_catch(self, text: str) -> None:
        """Watch every launch, so as to stop where a kernel faults."""
        self.debugger.catches_faults = text.strip() != "off"
        self.say("every launch is watched for faults" if text.strip() != "off" else "off")

    # ------------------------------------------------------------ looking

    def do_print(self, text: str) -> None:
        """A value."""
        style, rest = _style(text)
        self.say(text_of(evaluate(rest, self._names()), style))

    def do_lanes(self, text: str) -> None:
        """A value in every lane that stands here."""
        style, rest = _style(text)
        stop = self._here()
        for lane in range(WARP_SIZE):
            if stop.moment.arrived >> lane & 1:
                value = evaluate(rest, Names(stop.moment, lane))
                mark = "*" if lane == stop.lane else " "
                self.say(f"{mark}{lane:3} thread {stop.moment.thread(lane)}: "
                         f"{text_of(value, style)}")  # fmt: skip

    def do_x(self, text: str) -> None:
        """Memory."""
        for line in views.memory(text, self._names()):
            self.say(line)

    def do_list(self, text: str) -> None:
        """The source around here, or around a line."""
        line = int(text) if text.strip().isdecimal() else None
        for shown in views.source(self._here().moment, line):
            self.say(shown)

    def do_disassemble(self, text: str) -> None:
        """The PTX around here."""
        del text
        for line in views.disassembly(self._here().moment):
            self.say(line)

    def do_backtrace(self, text: str) -> None:
        """The calls that led here."""
        del text
        for line in views.frames(self._here().moment):
            self.say(line)

    def do_thread(self, text: str) -> None:
        """Look at another thread."""
        self._focus(f"thread {text}" if text.strip() else "")

    def do_block(self, text: str) -> None:
        """Look at another block's thread."""
        self._focus(f"block {text}" if text.strip() else "")

    def do_lane(self, text: str) -> None:
        """Look at another lane of this warp."""
        self._focus(f"lane {text}" if text.strip() else "")

    def do_warp(self, text: str) -> None:
        """Look at another warp of this block."""
        self._focus(f"warp {text}" if text.strip() else "")

    def _focus(self, text: str) -> None:
        stop = self._here()
        if text:
            if _FOCUS.sub("", text).strip():
                raise ValueError("say thread (X,Y,Z), block (X,Y,Z), or both")
            cta, thread = views.target(stop.moment, stop.lane, dict(_FOCUS.findall(text)))
            found = stop.moment.elsewhere(cta, thread)
            if found is None:
                raise LookupError(
                    f"block {cta} thread {thread} does not run now; `info threads` says who does"
                )
            self._stop = stop = replace(stop, moment=found[0], lane=found[1])
        self.say(views.place(stop.moment, stop.lane, has_reason=True))

    def do_info(self, text: str) -> None:
        """Tell of the launch, where threads and warps are, values, breakpoints."""
        words = shlex.split(text) or [""]
        found = [name for name in INFO if words[0] and name.startswith(words[0])]
        if len(found) != 1:
            raise ValueError(f"info what? {', '.join(INFO)}")
        for line in INFO[found[0]](self, words[1:]):
            self.say(line)

    def info_breakpoints(self, words: list[str]) -> Iterator[str]:
        """Every breakpoint."""
        del words
        if not self.debugger.breakpoints:
            yield "no breakpoints"
        for number, known in self.debugger.breakpoints.items():
            state = "" if known.enabled else ", disabled"
            yield f"{number}  {_described(known)}{state}, hit {known.hits} times"

    def info_kernels(self, words: list[str]) -> Iterator[str]:
        """The launch that is stopped in."""
        del words
        yield from views.kernels(self._here().moment)

    def info_threads(self, words: list[str]) -> Iterator[str]:
        """Where every thread is."""
        del words
        stop = self._here()
        yield from views.threads(stop.moment, stop.lane)

    def info_warps(self, words: list[str]) -> Iterator[str]:
        """Where every warp is."""
        del words
        yield from views.warps(self._here().moment)

    def info_registers(self, words: list[str]) -> Iterator[str]:
        """Registers of the focused thread."""
        yield from views.registers(self._names(), words)

    def info_locals(self, words: list[str]) -> Iterator[str]:
        """Variables of the source."""
        del words
        yield from views.variables(self._names(), parameters=False)

    def info_args(self, words: list[str]) -> Iterator[str]:
        """Parameters of the function."""
        del words
        yield from views.variables(self._names(), parameters=True)

    def info_shared(self, words: list[str]) -> Iterator[str]:
        """Shared variables of the block."""
        del words
        yield from views.shared(self._names())


Info = Callable[[Prompt, list[str]], Iterator[str]]
INFO: Final[dict[str, Info]] = {
    "kernels": Prompt.info_kernels,
    "threads": Prompt.info_threads,
    "warps": Prompt.info_warps,
    "registers": Prompt.info_registers,
    "locals": Prompt.info_locals,
    "args": Prompt.info_args,
    "shared": Prompt.info_shared,
    "breakpoints": Prompt.info_breakpoints,
}
"""What ``info`` can tell."""
_REPEATABLE: Final = frozenset({"step", "next", "stepi", "nexti", "continue"})


def _described(known: Breakpoint) -> str:
    condition = f" if {known.condition}" if known.condition else ""
    return f"{known.where}{condition}"


def _style(text: str) -> tuple[str, str]:
    match = re.match(r"/(\w)\s+(.*)", text.strip(), re.DOTALL)
    if match is None:
        if not text.strip():
            raise ValueError("print what?")
        return "", text
    if match[1] not in _STYLES:
        raise ValueError(f"/{match[1]} is no format; there are {' '.join(_STYLES)}")
    return match[1], match[2]
