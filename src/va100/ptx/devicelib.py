"""Functions that come with CUDA and that we write in PTX: the linker adds those a program calls.

The grid barrier of a cooperative launch is a word of the launch's workspace, whose address is in
``%envreg1`` and ``%envreg2``.  CTAs are counted there: all but the first add one, the first adds
what is missing to 2³¹, so that the top bit turns exactly when the last has come.

A launch by device code is a record that ``va100/children.h`` lays out, ahead of its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_HEADER: Final = ".version 7.0\n.target sm_80\n.address_size 64\n"

_HANDLE: Final = """
.weak .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    .reg .pred %grid;
    .reg .b32 %low, %high, %scope;
    .reg .b64 %handle;
    ld.param.u32 %scope, [scope];
    mov.u32 %high, %envreg1;
    mov.u32 %low, %envreg2;
    mov.b64 %handle, {%low, %high};
    setp.eq.u32 %grid, %scope, 1;
    selp.b64 %handle, %handle, 0, %grid;
    st.param.b64 [result], %handle;
    ret;
}
"""

_SYNCHRONIZE: Final = """
.weak .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %none, %first, %others, %waits;
    .reg .b32 %x, %y, %z, %any, %mine, %ctas, %before, %now, %turned;
    .reg .b64 %place;
    ld.param.u64 %place, [handle];
    setp.eq.u64 %none, %place, 0;
    @!%none bra ARRIVE;
    trap;
ARRIVE:
    bar.sync 0;
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %z, %tid.z;
    or.b32 %any, %x, %y;
    or.b32 %any, %any, %z;
    setp.ne.u32 %others, %any, 0;
    @%others bra LEAVE;
    mov.u32 %x, %nctaid.x;
    mov.u32 %y, %nctaid.y;
    mov.u32 %z, %nctaid.z;
    mul.lo.u32 %ctas, %x, %y;
    mul.lo.u32 %ctas, %ctas, %z;
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ctaid.y;
    mov.u32 %z, %ctaid.z;
    or.b32 %any, %x, %y;
    or.b32 %any, %any, %z;
    setp.eq.u32 %first, %any, 0;
    sub.u32 %mine, 0x80000001, %ctas;
    selp.b32 %mine, %mine, 1, %first;
    fence.acq_rel.gpu;
    atom.add.acq_rel.gpu.u32 %before, [%place+4], %mine;
WAIT:
    ld.acquire.gpu.u32 %now, [%place+4];
    xor.b32 %turned, %before, %now;
    setp.ge.s32 %waits, %turned, 0;
    @%waits bra WAIT;
    fence.acq_rel.gpu;
LEAVE:
    bar.sync 0;
    st.param.b32 [result], 0;
    ret;
}
"""

_BUFFER: Final = """
.extern .func (.param .b64 r) malloc(.param .b64 bytes);
.weak .func (.param .b64 result) __cudaCDP2GetParameterBufferV2(
    .param .b64 kernel, .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12],
    .param .b32 shared)
{
    .reg .pred %full;
    .reg .b32 %x;
    .reg .b64 %wide, %record;
    {
    .param .b64 bytes;
    .param .b64 address;
    st.param.b64 [bytes], @RECORD_BYTES@;
    call.uni (address), malloc, (bytes);
    ld.param.b64 %record, [address];
    }
    st.param.b64 [result], 0;
    setp.eq.u64 %full, %record, 0;
    @%full ret;
    ld.param.u64 %wide, [kernel];
    st.u64 [%record], %wide;
    ld.param.u32 %x, [grid];
    st.u32 [%record+8], %x;
    ld.param.u32 %x, [grid+4];
    st.u32 [%record+12], %x;
    ld.param.u32 %x, [grid+8];
    st.u32 [%record+16], %x;
    ld.param.u32 %x, [block];
    st.u32 [%record+20], %x;
    ld.param.u32 %x, [block+4];
    st.u32 [%record+24], %x;
    ld.param.u32 %x, [block+8];
    st.u32 [%record+28], %x;
    ld.param.u32 %x, [shared];
    st.u32 [%record+32], %x;
    add.u64 %record, %record, 64;
    st.param.b64 [result], %record;
    ret;
}
"""

_LAUNCH: Final = """
.extern .func (.param .b32 r) __va100_launch_grid(.param .b64 record);
.weak .global .u32 __va100_launch_error = 0;
.weak .func (.param .b32 result) @NAME@(.param .b64 buffer, .param .b64 stream)
{
    .reg .pred %good;
    .reg .b32 %error, %before;
    .reg .b64 %record, %stream;
    ld.param.u64 %record, [buffer];
    ld.param.u64 %stream, [stream];
    add.u64 %record, %record, -64;
    st.u64 [%record+40], %stream;
    {
    .param .b64 place;
    .param .b32 error;
    st.param.b64 [place], %record;
    call.uni (error), __va100_launch_grid, (place);
    ld.param.b32 %error, [error];
    }
    st.param.b32 [result], %error;
    setp.eq.u32 %good, %error, 0;
    @%good ret;
    atom.global.exch.b32 %before, [__va100_launch_error], %error;
    ret;
}
"""

_PLAIN_BUFFER: Final = """
.extern .func (.param .b64 r) malloc(.param .b64 bytes);
.weak .func (.param .b64 result) __cudaCDP2GetParameterBuffer(
    .param .b64 alignment, .param .b64 size)
{
    .reg .pred %full;
    .reg .b64 %size, %record;
    ld.param.u64 %size, [size];
    max.u64 %size, %size, @PARAMETER_BYTES@;
    add.u64 %size, %size, 64;
    {
    .param .b64 bytes;
    .param .b64 address;
    st.param.b64 [bytes], %size;
    call.uni (address), malloc, (bytes);
    ld.param.b64 %record, [address];
    }
    setp.eq.u64 %full, %record, 0;
    @!%full add.u64 %record, %record, 64;
    st.param.b64 [result], %record;
    ret;
}
"""

_PLAIN_LAUNCH: Final = """
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 buffer, .param .b64 stream);
.weak .func (.param .b32 result) @NAME@(
    .param .b64 kernel, .param .b64 buffer, .param .align 4 .b8 grid[12],
    .param .align 4 .b8 block[12], .param .b32 shared, .param .b64 stream)
{
    .reg .b32 %x;
    .reg .b64 %wide, %buffer;
    ld.param.u64 %buffer, [buffer];
    ld.param.u64 %wide, [kernel];
    st.u64 [%buffer-64], %wide;
    ld.param.u32 %x, [grid];
    st.u32 [%buffer-56], %x;
    ld.param.u32 %x, [grid+4];
    st.u32 [%buffer-52], %x;
    ld.param.u32 %x, [grid+8];
    st.u32 [%buffer-48], %x;
    ld.param.u32 %x, [block];
    st.u32 [%buffer-44], %x;
    ld.param.u32 %x, [block+4];
    st.u32 [%buffer-40], %x;
    ld.param.u32 %x, [block+8];
    st.u32 [%buffer-36], %x;
    ld.param.u32 %x, [shared];
    st.u32 [%buffer-32], %x;
    ld.param.u64 %wide, [stream];
    {
    .param .b64 place;
    .param .b64 order;
    .param .b32 error;
    st.param.b64 [place], %buffer;
    st.param.b64 [order], %wide;
    call.uni (error), __cudaCDP2LaunchDeviceV2, (place, order);
    ld.param.b32 %x, [error];
    }
    st.param.b32 [result], %x;
    ret;
}
"""

_LAST_ERROR: Final = """
.weak .global .u32 __va100_launch_error = 0;
.weak .func (.param .b32 result) __cudaCDP2GetLastError()
{
    .reg .b32 %error;
    atom.global.exch.b32 %error, [__va100_launch_error], 0;
    st.param.b32 [result], %error;
    ret;
}
"""

_PEEK: Final = """
.weak .global .u32 __va100_launch_error = 0;
.weak .func (.param .b32 result) __cudaCDP2PeekAtLastError()
{
    .reg .b32 %error;
    ld.volatile.global.u32 %error, [__va100_launch_error];
    st.param.b32 [result], %error;
    ret;
}
"""

_MAKE: Final = """
.weak .func (.param .b32 result) @NAME@(.param .b64 place, .param .b32 flags)
{
    .reg .b64 %place, %handle;
    ld.param.u64 %place, [place];
    mov.u64 %handle, 256;
    st.u64 [%place], %handle;
    st.param.b32 [result], 0;
    ret;
}
"""
"""A stream or an event.  Grids run one after another in launch order, so one handle does."""

_NOTHING: Final = """
.weak .func (.param .b32 result) @NAME@(@PARAMETERS@)
{
    st.param.b32 [result], 0;
    ret;
}
"""

_SET_CONDITIONAL: Final = """
.weak .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)
{
    .reg .b32 %value;
    .reg .b64 %place;
    ld.param.u64 %place, [handle];
    ld.param.u32 %value, [value];
    st.relaxed.gpu.u32 [%place], %value;
    ret;
}
"""
"""A conditional handle is the address of a word (``native/driver/graph.h``)."""

_ONE: Final = ".param .b64 a"
_TWO: Final = ".param .b64 a, .param .b64 b"
_TWO_AND_FLAGS: Final = ".param .b64 a, .param .b64 b, .param .b32 flags"
_ORDERING: Final = {
    "StreamDestroy": _ONE,
    "EventDestroy": _ONE,
    "EventRecord": _TWO,
    "EventRecord_ptsz": _TWO,
    "EventRecordWithFlags": _TWO_AND_FLAGS,
    "EventRecordWithFlags_ptsz": _TWO_AND_FLAGS,
    "StreamWaitEvent": _TWO_AND_FLAGS,
    "StreamWaitEvent_ptsz": _TWO_AND_FLAGS,
}
"""Calls that order grids, which are ordered already; the parameters of each."""


def _named(template: str, name: str) -> tuple[str, str]:
    return name, _HEADER + template.replace("@NAME@", name)


DEVICE_LIBRARY: Final[Mapping[str, str]] = MappingProxyType(
    dict(
        [
            _named(_HANDLE, "cudaCGGetIntrinsicHandle"),
            _named(_SYNCHRONIZE, "cudaCGSynchronize"),
            _named(_BUFFER, "__cudaCDP2GetParameterBufferV2"),
            _named(_LAUNCH, "__cudaCDP2LaunchDeviceV2"),
            _named(_LAUNCH, "__cudaCDP2LaunchDeviceV2_ptsz"),
            _named(_PLAIN_BUFFER, "__cudaCDP2GetParameterBuffer"),
            _named(_PLAIN_LAUNCH, "__cudaCDP2LaunchDevice"),
            _named(_PLAIN_LAUNCH, "__cudaCDP2LaunchDevice_ptsz"),
            _named(_LAST_ERROR, "__cudaCDP2GetLastError"),
            _named(_PEEK, "__cudaCDP2PeekAtLastError"),
            _named(_MAKE, "__cudaCDP2StreamCreateWithFlags"),
            _named(_MAKE, "__cudaCDP2EventCreateWithFlags"),
            _named(_SET_CONDITIONAL, "cudaGraphSetConditional"),
            *(
                _named(_NOTHING.replace("@PARAMETERS@", parameters), f"__cudaCDP2{name}")
                for name, parameters in _ORDERING.items()
            ),
        ]
    )
)
"""Function name to a whole PTX text that defines it, but for the size of a launch's record."""

RECORD_BYTES: Final = 64
"""Of a launch, ahead of its parameters (``va_child_grid``)."""


def device_function(name: str, parameter_bytes: int) -> str:
    """The text that defines a function; records have room for so many bytes of parameters."""
    size = RECORD_BYTES + parameter_bytes
    text = DEVICE_LIBRARY[name].replace("@RECORD_BYTES@", str(size))
    return text.replace("@PARAMETER_BYTES@", str(parameter_bytes))
