"""The fixed text of generated kernels: header, registers, prologue, device functions, opcodes."""

from __future__ import annotations

import random

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"

REGISTERS = """
    .reg .b32 %u32_<3>; .reg .b32 %a32_<3>; .reg .b32 %v32_<3>; .reg .b32 %x32_<4>;
    .reg .b64 %u64_<2>; .reg .b64 %a64_<2>; .reg .b64 %v64_<2>; .reg .b64 %x64_<4>;
    .reg .b16 %u16_<1>; .reg .b16 %a16_<1>; .reg .b16 %v16_<1>; .reg .b16 %x16_<4>;
    .reg .f32 %f<3>;
    .reg .pred %pu<2>; .reg .pred %pa<2>; .reg .pred %pv<2>; .reg .pred %pd<6>;
    .reg .pred %pk, %px, %pl;
    .reg .b32 %m<6>; .reg .b32 %n<6>; .reg .b32 %t<6>;
    .reg .b32 %k0, %k1, %k0x, %gone, %lane, %lin, %gid, %tx, %ix, %sel, %sown, %sbase, %tmp, %tmp2;
    .reg .b64 %in, %out1, %out2, %acc, %ad, %base, %lgen, %lspc, %fn, %fn2, %wide;
    .local .align 8 .b8 loc[64];
    .shared .align 8 .b8 win[4096];
"""

PROLOGUE = """
    proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _, .param .b64 _);
    ld.param.u64 %in, [pin];
    ld.param.u64 %out1, [pout1];
    ld.param.u64 %out2, [pout2];
    ld.param.u64 %acc, [pacc];
    ld.param.u32 %k0, [pk0];
    ld.param.u32 %k1, [pk1];
    and.b32 %k0x, %k0, 7;
    mov.u32 %lane, %laneid;
    mov.u32 %tx, %tid.x;
    mov.u32 %tmp, %tid.y;
    mad.lo.u32 %lin, %tmp, @X@, %tx;
    mov.u32 %tmp, %tid.z;
    mad.lo.u32 %lin, %tmp, @XY@, %lin;
    mov.u32 %tmp, %ctaid.x;
    mad.lo.u32 %gid, %tmp, @CTA@, %lin;
    mul.wide.u32 %wide, %gid, 4;
    add.u64 %out1, %out1, %wide;
    mul.wide.u32 %wide, %gid, 8;
    add.u64 %out2, %out2, %wide;
    mov.u32 %sbase, win;
    shl.b32 %tmp, %lin, 2;
    add.u32 %sown, %sbase, %tmp;
    mov.u64 %lspc, loc;
    cvta.local.u64 %lgen, %lspc;
    st.local.v2.u64 [loc], {%wide, %in};
    st.local.v2.u32 [loc+16], {%gid, %lane};
    st.local.u64 [loc+24], %wide;
    st.local.v4.u32 [loc+32], {%lane, %lane, %gid, %gid};
    st.local.v4.u32 [loc+48], {%tx, %gid, %k0, %k1};
    st.local.v2.u64 [loc], {%wide, %wide};
    and.b32 %tmp, %gid, 1023;
    mul.wide.u32 %wide, %tmp, 4;
    add.u64 %ad, %in, %wide;
    ld.global.u32 %v32_0, [%ad];
    ld.global.u32 %v32_1, [%ad+4096];
    ld.global.u32 %v32_2, [%ad+8192];
    mov.b64 %v64_0, {%v32_0, %v32_2};
    mov.b64 %v64_1, {%v32_1, %gid};
    cvt.u16.u32 %v16_0, %v32_0;
    mov.u32 %u32_0, %k0;
    ld.global.u32 %u32_1, [%in+8];
    mov.u32 %u32_2, %ctaid.x;
    mov.u64 %u64_0, 3;
    ld.global.u64 %u64_1, [%in+16];
    cvt.u16.u32 %u16_0, %k0;
    mov.u32 %a32_0, %tx;
    mov.u32 %a32_1, %tid.y;
    mov.u32 %tmp, %ctaid.x;
    mov.u32 %tmp2, %ntid.x;
    mad.lo.u32 %a32_2, %tmp, %tmp2, %tx;
    mul.wide.u32 %a64_0, %a32_2, 8;
    cvt.u64.u32 %a64_1, %tx;
    cvt.u16.u32 %a16_0, %tx;
    setp.lt.s32 %pu0, %k0, 4;
    setp.eq.u32 %pu1, %k1, 3;
    setp.lt.u32 %pa0, %tx, 13;
    setp.ge.u32 %pa1, %laneid, %k1;
    setp.lt.s32 %pv0, %v32_0, %v32_1;
    and.b32 %tmp, %v32_2, 1;
    setp.ne.u32 %pv1, %tmp, 0;
    mov.pred %pk, %pu0;
    mov.pred %px, %pu0;
    mov.pred %pl, %pu0;
    cvt.rn.f32.s32 %f0, %tx;
    cvt.rn.f32.u32 %f1, %k0;
    mov.b32 %f2, %v32_0;
    mov.u32 %x32_0, 0; mov.u32 %x32_1, 0; mov.u32 %x32_2, 0; mov.u32 %x32_3, 0;
    mov.u64 %x64_0, 0; mov.u64 %x64_1, 0;
    mov.u16 %x16_0, 0; mov.u16 %x16_1, 0;
    sub.u32 %tmp, %lin, %lane;
    sub.u32 %tmp, @CTA@, %tmp;
    min.u32 %tmp, %tmp, 32;
    mov.u32 %tmp2, 32;
    sub.u32 %tmp2, %tmp2, %tmp;
    mov.u32 %m0, 0xffffffff;
    shr.u32 %m0, %m0, %tmp2;
"""

FUNCTIONS = """
.func (.param .b32 r) deep(.param .b32 a, .param .b32 b, .param .b64 p);

.func (.param .b32 r) mix(.param .b32 a, .param .b32 b, .param .b64 p)
{
    .reg .b32 %r<8>; .reg .pred %p<3>;
    ld.param.b32 %r0, [a];
    ld.param.b32 %r1, [b];
    mov.u32 %r3, 0;
    and.b32 %r2, %r0, 3;
    setp.gt.s32 %p0, %r0, %r1;
    @%p0 bra NEXT;
    xor.b32 %r1, %r1, 0x55;
    st.param.b32 [r], %r0;
    setp.eq.u32 %p1, %r2, 3;
    @%p1 ret;
NEXT:
    setp.ge.u32 %p2, %r3, %r2;
    @%p2 bra DONE;
    mad.lo.u32 %r1, %r1, 3, %r3;
    add.u32 %r3, %r3, 1;
    bra NEXT;
DONE:
    st.param.b32 [r], %r1;
    ret;
}

.func (.param .b32 r) deep(.param .b32 a, .param .b32 b, .param .b64 p)
{
    .reg .b32 %r<8>; .reg .pred %p<3>; .reg .b64 %d<3>;
    .local .align 4 .b8 here[16];
    ld.param.b32 %r0, [a];
    ld.param.b32 %r1, [b];
    ld.param.b64 %d0, [p];
    and.b32 %r0, %r0, 7;
    st.local.u32 [here+4], %r1;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 bra LAST;
    sub.u32 %r2, %r0, 1;
    mad.lo.u32 %r3, %r1, 5, 1;
    {
    .param .b32 pa; .param .b32 pb; .param .b64 pc; .param .b32 pr;
    st.param.b32 [pa], %r2;
    st.param.b32 [pb], %r3;
    st.param.b64 [pc], %d0;
    call (pr), deep, (pa, pb, pc);
    ld.param.b32 %r4, [pr];
    }
    ld.local.u32 %r5, [here+4];
    xor.b32 %r1, %r4, %r5;
LAST:
    st.param.b32 [r], %r1;
    ret;
}

.func (.param .b32 r) look(.param .b32 a, .param .b32 b, .param .b64 p)
{
    .reg .b32 %r<8>; .reg .b64 %d<4>;
    ld.param.b32 %r0, [a];
    ld.param.b64 %d0, [p];
    and.b32 %r1, %r0, 1023;
    mul.wide.u32 %d1, %r1, 4;
    add.u64 %d1, %d0, %d1;
    ld.u32 %r2, [%d1];
    ld.global.u32 %r3, [%d1+4];
    sub.u32 %r2, %r2, %r3;
    st.param.b32 [r], %r2;
    ret;
}

.func (.param .b32 r) some(.param .b32 a, .param .b32 b, .param .b64 p)
{
    .reg .b32 %r<8>; .reg .pred %p<3>; .reg .b64 %d<3>;
    ld.param.b32 %r0, [a];
    ld.param.b32 %r1, [b];
    ld.param.b64 %d0, [p];
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p0, %r2, 0;
    st.param.b32 [r], %r0;
    @%p0 ret;
    {
    .param .b32 pa; .param .b32 pb; .param .b64 pc; .param .b32 pr;
    st.param.b32 [pa], %r1;
    st.param.b32 [pb], %r0;
    st.param.b64 [pc], %d0;
    call (pr), mix, (pa, pb, pc);
    ld.param.b32 %r3, [pr];
    }
    st.param.b32 [r], %r3;
    ret;
}

.func (.param .b32 r) other(.param .b32 a, .param .b32 b, .param .b64 p)
{
    .reg .b32 %r<8>; .reg .f32 %f<3>;
    ld.param.b32 %r0, [a];
    ld.param.b32 %r1, [b];
    cvt.rn.f32.s32 %f0, %r0;
    cvt.rn.f32.s32 %f1, %r1;
    mul.f32 %f2, %f0, %f1;
    mov.b32 %r2, %f2;
    st.param.b32 [r], %r2;
    ret;
}
"""


def spelled(rng: random.Random, width: int, d: str, a: str, b: str, c: str, n: str) -> str:
    """One integer instruction of a width, on registers or literals of that width."""
    s = rng.choice("su")
    several = [
        f"add.{s}{width} {d}, {a}, {b};",
        f"add.{s}{width} {d}, {a}, {b};",
        f"sub.{s}{width} {d}, {a}, {b};",
        f"mul.lo.{s}{width} {d}, {a}, {b};",
        f"mul.hi.{s}{width} {d}, {a}, {b};",
        f"mad.lo.{s}{width} {d}, {a}, {b}, {c};",
        f"and.b{width} {d}, {a}, {b};",
        f"or.b{width} {d}, {a}, {b};",
        f"xor.b{width} {d}, {a}, {b};",
        f"not.b{width} {d}, {a};",
        f"shl.b{width} {d}, {a}, {n};",
        f"shr.{s}{width} {d}, {a}, {n};",
        f"shl.b{width} {d}, {a}, {rng.randrange(width + 2)};",
        f"shr.{s}{width} {d}, {a}, {rng.randrange(width + 2)};",
        f"min.{s}{width} {d}, {a}, {b};",
        f"max.{s}{width} {d}, {a}, {b};",
        f"div.{s}{width} {d}, {a}, {rng.choice((b, '4', '16', '3', '32'))};",
        f"rem.{s}{width} {d}, {a}, {rng.choice((b, '4', '16', '3', '32'))};",
        f"neg.s{width} {d}, {a};",
        f"abs.s{width} {d}, {a};",
        f"mov.b{width} {d}, {a};",
    ]
    if width != 16:
        several += [f"brev.b{width} {d}, {a};", f"bfe.{s}{width} {d}, {a}, {n}, {n};"]
    if width == 32:
        several += [
            f"popc.b32 {d}, {a};",
            f"clz.b32 {d}, {a};",
            f"bfind.{s}32 {d}, {a};",
            f"add.sat.s32 {d}, {a}, {b};",
            f"sad.{s}32 {d}, {a}, {b}, {c};",
            f"prmt.b32 {d}, {a}, {b}, {c};",
            f"shf.l.wrap.b32 {d}, {a}, {b}, {c};",
            f"shf.r.clamp.b32 {d}, {a}, {b}, {c};",
            f"lop3.b32 {d}, {a}, {b}, {c}, {rng.randrange(256)};",
            f"bfi.b32 {d}, {a}, {b}, {c}, 9;",
            f"mul24.lo.{s}32 {d}, {a}, {b};",
            f"mad.hi.{s}32 {d}, {a}, {b}, {c};",
        ]
    return rng.choice(several)
