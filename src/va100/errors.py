"""Every exception va100 raises, drawn as a tree.

::

    Va100Error
    ├── PtxError                 text that cannot be taken, with a caret
    │   ├── PtxSyntaxError       not PTX
    │   ├── PtxVerifyError       PTX, but against its rules
    │   └── UnsupportedInstruction   legal somewhere, not executed here
    ├── ImageError               a module image of a kind that cannot be loaded
    ├── LinkError                modules that do not fit together
    ├── LaunchError              a launch the chip would refuse
    │   └── OutOfResources
    ├── DeviceFault              a kernel's wrongdoing, sticky to its context
    │   ├── IllegalAddress
    │   ├── MisalignedAddress
    │   ├── TrapExecuted
    │   ├── AssertFailed
    │   ├── IllegalInstruction
    │   ├── StackOverflow
    │   └── Deadlock
    ├── CapacityError
    │   ├── OutOfMemory
    │   └── NoPlacement
    ├── PlanError                input that makes no plan, and what to do
    ├── NodeError                what a node's state refuses
    ├── NvmlError                a call of NVML that failed, with its code
    ├── SetupError               something this machine lacks, and the command that adds it
    └── TenantError
        ├── QuotaExceeded
        ├── NotPermitted
        ├── NotSignedIn          nobody known asks
        ├── NotFound             nothing of that name that the asker may see
        ├── BadRequest           a request that means nothing
        ├── Conflict             a request that what is there does not allow
        │   └── BeingReturned    with the seconds to wait
        ├── PaymentRequired
        └── TooManyRequests      with the seconds to wait

The facts are attributes; the message is built from them here and nowhere else.  Codes
(``CUresult``, HTTP) exist at the edges only, each in one literal map.  Misuse of the Python
API stays ``ValueError`` and ``TypeError``.
"""

from __future__ import annotations

from typing import Any


class Va100Error(Exception):
    """Root of every exception raised on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by facts, since keyword-only constructors do not pickle by themselves."""
        return _revive, (type(self), self.args, dict(self.__dict__))


def _revive(kind: type[Va100Error], args: tuple[Any, ...], facts: dict[str, Any]) -> Va100Error:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class PtxError(Va100Error):
    """PTX text that cannot be taken: message, place, and the line with a caret under it.

    Attributes
    ----------
    problem : str
        What is wrong, what was expected.
    file : str
    line, column : int
        1-based; 0 when the place is unknown.
    source_line : str
        The offending line of text.
    hint : str
        What to do about it; may be empty.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str = "<ptx>",
        line: int = 0,
        column: int = 0,
        source_line: str = "",
        hint: str = "",
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.column = column
        self.source_line = source_line
        self.hint = hint
        super().__init__(self._message())

    def _message(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.line else f"{self.file}: "
        parts = [place + self.problem]
        if self.source_line:
            text = self.source_line.replace("\t", " ")
            parts += [f"    {text}", "    " + " " * max(self.column - 1, 0) + "^"]
        if self.hint:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)


class PtxSyntaxError(PtxError):
    """Text that is not PTX."""


class PtxVerifyError(PtxError):
    """PTX that breaks a rule of the PTX ISA or asks for what ``.target sm_80`` does not have."""


class UnsupportedInstruction(PtxError):
    """A legal instruction form that this version does not execute; refused before it starts."""


class ImageError(Va100Error):
    """A module image of a kind that cannot be loaded (SASS only, another vendor's container)."""

    def __init__(self, problem: str, *, hint: str = "") -> None:
        self.problem = problem
        self.hint = hint
        super().__init__(f"{problem}\n  hint: {hint}" if hint else problem)


class LinkError(Va100Error):
    """Modules that do not fit together: an undefined or twice defined symbol."""

    def __init__(self, problem: str, *, symbol: str = "") -> None:
        self.problem = problem
        self.symbol = symbol
        super().__init__(problem)


class LaunchError(Va100Error):
    """A launch that the chip would refuse."""

    def __init__(self, problem: str, *, kernel: str = "") -> None:
        self.problem = problem
        self.kernel = kernel
        super().__init__(f"kernel {kernel}: {problem}" if kernel else problem)


class OutOfResources(LaunchError):
    """A launch that asks for more of a resource than one SM or one CTA has."""

    def __init__(self, *, kernel: str, resource: str, required: int, limit: int) -> None:
        self.resource = resource
        self.required = required
        self.limit = limit
        super().__init__(f"needs {required} {resource}, the limit is {limit}", kernel=kernel)


class DeviceFault(Va100Error):
    """A kernel's wrongdoing; it stays with the context until the context is destroyed.

    Attributes
    ----------
    kernel : str
    cta, thread : tuple of three int
        ``ctaid`` and ``tid`` of the first thread that did it.
    file : str
    line : int
        Of the PTX instruction or, when the PTX carries line information, of the source.
    instruction : str
        The PTX instruction as written.
    """

    def __init__(
        self,
        what: str,
        *,
        kernel: str = "",
        cta: tuple[int, int, int] = (0, 0, 0),
        thread: tuple[int, int, int] = (0, 0, 0),
        file: str = "",
        line: int = 0,
        instruction: str = "",
    ) -> None:
        self.what = what
        self.kernel = kernel
        self.cta = cta
        self.thread = thread
        self.file = file
        self.line = line
        self.instruction = instruction
        place = f"{file}:{line}" if file else f"PTX line {line}"
        super().__init__(
            f"{what}\n  in kernel {kernel} at {place}\n"
            f"  by thread {thread} of CTA {cta}\n  instruction: {instruction}"
        )


class IllegalAddress(DeviceFault):
    """An access outside every live allocation (CUDA error 700)."""

    def __init__(
        self, *, space: str, address: int, size: int, nearest: str = "", **place: Any
    ) -> None:
        self.space = space
        self.address = address
        self.size = size
        self.nearest = nearest
        what = f"illegal address 0x{address:x}: {size}-byte access to {space} memory"
        super().__init__(f"{what}; {nearest}" if nearest else what, **place)


class MisalignedAddress(DeviceFault):
    """An access whose address is no multiple of its size (CUDA error 716)."""

    def __init__(self, *, space: str, address: int, size: int, **place: Any) -> None:
        self.space = space
        self.address = address
        self.size = size
        super().__init__(
            f"misaligned address 0x{address:x}: {size}-byte access to {space} memory "
            f"needs an address that is a multiple of {size}",
            **place,
        )


class TrapExecuted(DeviceFault):
    """``trap`` was executed (CUDA error 719)."""

    def __init__(self, **place: Any) -> None:
        super().__init__("trap executed", **place)


class AssertFailed(DeviceFault):
    """A device-side ``assert`` failed (CUDA error 710)."""

    def __init__(self, *, condition: str, **place: Any) -> None:
        self.condition = condition
        super().__init__(f"device-side assertion `{condition}` failed", **place)


class IllegalInstruction(DeviceFault):
    """An instruction used in a way the hardware cannot execute (CUDA error 715)."""


class StackOverflow(DeviceFault):
    """Calls nested more deeply than a thread's stack allows (CUDA error 714)."""


class Deadlock(DeviceFault):
    """Threads that wait for each other for ever; hardware would hang (CUDA error 702)."""


class CapacityError(Va100Error):
    """A request that is larger than what is free."""


class OutOfMemory(CapacityError):
    """Device memory is exhausted."""

    def __init__(self, *, requested_bytes: int, free_bytes: int) -> None:
        self.requested_bytes = requested_bytes
        self.free_bytes = free_bytes
        super().__init__(f"out of memory: {requested_bytes} bytes asked for, {free_bytes} free")


class NoPlacement(CapacityError):
    """No arrangement satisfies the request."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


class PlanError(Va100Error):
    """Input that makes no plan: what is wrong and where, and what to do."""

    def __init__(self, problem: str, *, hint: str = "") -> None:
        self.problem = problem
        self.hint = hint
        super().__init__(f"{problem}\n  hint: {hint}" if hint else problem)


class SetupError(Va100Error):
    """Something this machine lacks, with the one command that adds it."""

    def __init__(self, problem: str, *, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}\n  to fix: {remedy}")


class NodeError(Va100Error):
    """A node that is not there, is used, or will not do.

    Attributes
    ----------
    name : str
        Of the node; empty: the environment's.
    why : str
        One word for programs, such as ``in-use``.
    problem : str
    """

    def __init__(self, *, name: str, why: str, problem: str) -> None:
        self.name = name
        self.why = why
        self.problem = problem
        super().__init__(problem)


class NvmlError(Va100Error):
    """A call of NVML that failed.

    Attributes
    ----------
    code : int
        What it returned.
    function : str
    text : str
        What the code means.
    """

    def __init__(self, *, code: int, function: str, text: str) -> None:
        self.code = code
        self.function = function
        self.text = text
        super().__init__(f"{function}: {text}")


class TenantError(Va100Error):
    """A tenant's request that the cloud's rules refuse."""


class QuotaExceeded(TenantError):
    """A tenant asked for more than its quota."""

    def __init__(self, *, resource: str, requested: int, limit: int) -> None:
        self.resource = resource
        self.requested = requested
        self.limit = limit
        super().__init__(f"quota of {resource} is {limit}, {requested} requested")


class NotPermitted(TenantError):
    """A tenant asked for what it may not do."""

    def __init__(self, action: str) -> None:
        self.action = action
        super().__init__(f"not permitted: {action}")


class NotSignedIn(TenantError):
    """A request without a key or session, or with one that is not good."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


class NotFound(TenantError):
    """Nothing of that name, or nothing that the asker may know of."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"no {kind} {name}")


class BadRequest(TenantError):
    """A request that cannot be understood, with what was expected."""

    def __init__(self, problem: str, *, field: str = "") -> None:
        self.problem = problem
        self.field = field
        super().__init__(f"{field}: {problem}" if field else problem)


class Conflict(TenantError):
    """A request that the state of things does not allow."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


class BeingReturned(Conflict):
    """A request for an instance whose lent GPU is on its way back."""

    def __init__(self, *, name: str, retry_after_s: int) -> None:
        self.name = name
        self.retry_after_s = retry_after_s
        super().__init__(f"{name} had lent its GPU, which is being returned: try again")


class PaymentRequired(TenantError):
    """An account without the money for what it asks."""

    def __init__(self, *, needed_micro: int, left_micro: int) -> None:
        self.needed_micro = needed_micro
        self.left_micro = left_micro
        super().__init__(
            f"credit of ${left_micro / 1e6:.2f} is not enough: ${needed_micro / 1e6:.2f} are needed"
        )


class TooManyRequests(TenantError):
    """More requests than one may make in a time."""

    def __init__(self, *, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"too many requests; try again in {retry_after_s} s")
