"""How occupancy would change with registers, block size and shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from va100.perf.occupancy import occupancy
from va100.profile.html.markup import Markup, element, joined, picture
from va100.profile.html.scale import Linear
from va100.profile.launch import Launch
from va100.spec.model import ChipSpec
from va100.units import KIB
from va100.work import WARP_SIZE, Dim3, KernelResources, LaunchConfig

_WIDTH, _HEIGHT = 320.0, 170.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 36.0, 308.0, 12.0, 126.0
_MOST_REGISTERS: Final = 255
_REGISTER_STEP: Final = 8
_SHARED_STEP: Final = 2 * KIB

Curve = Sequence[tuple[float, float]]


def occupancy_charts(launch: Launch, chip: ChipSpec) -> Markup:
    """Draw a curve for each of the three, with the launch's own place on it."""
    warps = chip.sm.resident_warp_count
    shapes = (
        ("registers a thread", _by_registers(launch, chip), float(launch.registers), ""),
        ("threads a CTA", _by_block(launch, chip), float(launch.block.size), ""),
        ("shared memory a CTA", _by_shared(launch, chip), launch.shared_bytes / KIB, " KiB"),
    )
    return joined(
        *(_chart(name, curve, place, unit, launch, warps) for name, curve, place, unit in shapes)
    )


def _facts(launch: Launch) -> tuple[LaunchConfig, KernelResources]:
    config = LaunchConfig(
        grid=launch.grid, block=launch.block, dynamic_shared_bytes=launch.dynamic_shared_bytes
    )
    static = launch.shared_bytes - launch.dynamic_shared_bytes
    return config, KernelResources(
        registers_per_thread=launch.registers, static_shared_bytes=static
    )


def _by_registers(launch: Launch, chip: ChipSpec) -> Curve:
    config, resources = _facts(launch)
    counts = [*range(_REGISTER_STEP, _MOST_REGISTERS, _REGISTER_STEP), _MOST_REGISTERS]
    return _curve(
        counts,
        lambda count: (
            occupancy(config, replace(resources, registers_per_thread=int(count)), chip.sm).fraction
        ),
    )


def _by_block(launch: Launch, chip: ChipSpec) -> Curve:
    config, resources = _facts(launch)
    sizes = range(WARP_SIZE, chip.sm.block_thread_count + 1, WARP_SIZE)
    return _curve(
        sizes,
        lambda size: occupancy(replace(config, block=Dim3(int(size))), resources, chip.sm).fraction,
    )


def _by_shared(launch: Launch, chip: ChipSpec) -> Curve:
    config, resources = _facts(launch)
    bare = replace(config, dynamic_shared_bytes=0)
    sizes = range(0, chip.sm.shared_block_optin_bytes + 1, _SHARED_STEP)
    found = _curve(
        sizes,
        lambda size: (
            occupancy(bare, replace(resources, static_shared_bytes=int(size)), chip.sm).fraction
        ),
    )
    return [(size / KIB, fraction) for size, fraction in found]


def _curve(places: Sequence[int], fraction: Callable[[float], float]) -> Curve:
    return [(float(place), fraction(place)) for place in places]


def _chart(name: str, curve: Curve, place: float, unit: str, launch: Launch, warps: int) -> Markup:
    x = Linear(0.0, curve[-1][0], _LEFT, _RIGHT)
    y = Linear(0.0, 1.0, _BOTTOM, _TOP)
    path = "M" + " L".join(f"{x(at):.1f} {y(value):.1f}" for at, value in _steps(curve))
    shown = f"{place:g}{unit}"
    title = (
        f"Occupancy by {name}: {launch.occupancy:.0%} at {shown}; "
        f"{max(value for _, value in curve):.0%} at best"
    )
    return picture(
        _WIDTH, _HEIGHT, title, _axes(x, y, curve[-1][0], unit, warps),
        element("path", d=path, class_="curve"),
        element("circle", cx=x(place), cy=y(launch.occupancy), r=5, class_="dot"),
        element("text", f"{name}: {shown}", x=(_LEFT + _RIGHT) / 2, y=_HEIGHT - 8,
                class_="axis middle"),
        class_="chart small",
    )  # fmt: skip


def _steps(curve: Curve) -> list[tuple[float, float]]:
    """Hold each value until the next place, as an allocation does."""
    points = [curve[0]]
    for (_, before), (at, value) in pairwise(curve):
        points += [(at, before), (at, value)] if value != before else [(at, value)]
    return points


def _axes(x: Linear, y: Linear, last: float, unit: str, warps: int) -> Markup:
    lines = []
    for share in (0.0, 0.5, 1.0):
        at = y(share)
        lines.append(element("line", x1=_LEFT, x2=_RIGHT, y1=at, y2=at, class_="grid"))
        label = f"{share * warps:.0f}"
        lines.append(element("text", label, x=_LEFT - 6, y=at + 4, class_="tick end"))
    for share, place in ((0.0, "tick"), (0.5, "tick middle"), (1.0, "tick end")):
        label = f"{round(share * last)}{unit if share else ''}"
        lines.append(element("text", label, x=x(share * last), y=_BOTTOM + 16, class_=place))
    return joined(*lines)
