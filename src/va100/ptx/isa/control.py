"""Branches, calls, exits and miscellaneous control: the rows."""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form, Support
from va100.ptx.isa.rows import form
from va100.work import Pipe

_ROW: Final = partial(form, family=Family.CONTROL, pipe=Pipe.CONTROL)
_PARSED: Final = partial(_ROW, support=Support.PARSED)
_SECTION: Final = "control-flow-instructions-"
_OTHER: Final = "miscellaneous-instructions-"

FORMS: Final[tuple[Form, ...]] = (
    _ROW("bra", "?uni", "l", anchor=_SECTION + "bra"),
    _ROW("brx", "idx ?uni", "al", anchor=_SECTION + "brx-idx", since=(6, 0), min_sm=30),
    _ROW("call", "?uni", "?v?s?v?l", anchor=_SECTION + "call"),
    _ROW("ret", "?uni", "", anchor=_SECTION + "ret"),
    _ROW("exit", "", "", anchor=_SECTION + "exit"),
    _ROW("trap", "", "", anchor=_OTHER + "trap"),
    _ROW("brkpt", "", "", anchor=_OTHER + "brkpt"),
    _ROW("nanosleep", "u32", "a", anchor=_OTHER + "nanosleep", since=(6, 3), min_sm=70),
    _ROW("pmevent", "?mask", "i", anchor=_OTHER + "pmevent", since=(1, 4)),
    _PARSED("setmaxnreg", "inc|dec sync aligned u32", "i", anchor=_OTHER + "setmaxnreg",
            since=(8, 0), min_sm=90),
    _PARSED("griddepcontrol", "launch_dependents|wait", "",
            anchor="parallel-synchronization-and-communication-instructions-griddepcontrol",
            since=(7, 8), min_sm=90),
    _PARSED("clusterlaunchcontrol", "try_cancel async ?shared::cta "
            "mbarrier::complete_tx::bytes ?multicast::cluster::all b128", "mm",
            anchor="parallel-synchronization-and-communication-instructions-"
            "clusterlaunchcontrol-try-cancel", since=(8, 6), min_sm=100),
)  # fmt: skip
