"""Small fleets, and what must hold of any fleet at any time."""

from __future__ import annotations

from va100.cloud.geometry import added, merged, packed
from va100.cloud.models import Home, Lease, Node, Place, Request, Shape, Tier

SXM = "A100-SXM4-80GB"
PCIE = "A100-PCIE-80GB"


def hgx(name="node-1", gpus=8):
    """A board on which all cards reach each other."""
    return Node(name=name, model=SXM, gpu_count=gpus, islands=(tuple(range(gpus)),))


def bridged(name="pcie-1", gpus=4):
    """A host whose cards reach each other in pairs."""
    pairs = tuple((gpu, gpu + 1) for gpu in range(0, gpus, 2))
    return Node(name=name, model=PCIE, gpu_count=gpus, islands=pairs)


def card(count=1, model=SXM):
    return Shape(model, cards=count)


def mig(profile, model=SXM):
    return Shape(model, profile)


def ask(name, tenant="ann", shape=None, **more):
    return Request(name=name, tenant=tenant, shape=shape or card(), **more)


def lease(name, shape, place, tenant="ann", tier=Tier.STANDARD, **more):
    return Lease(name=name, tenant=tenant, shape=shape, place=place, tier=tier, since_s=0, **more)


def home(tenant, shape, place):
    return Home(tenant=tenant, shape=shape, place=place)


def at(node, gpu, profile="", start=0):
    return Place(node, (gpu,), profile, start)


def assert_legal(fleet):
    """No two leases on a slice, no card over its compute slices, promises kept clear."""
    for one in fleet.cards:
        state = 0
        for other in one.leases.values():
            if not other.lent:
                state = added(state, other.shape.fit, other.place.start)
                assert state is not None, f"{one.node.name} GPU {one.gpu}: {one.leases}"
        firm = {(x.shape.fit, x.place.start) for x in one.leases.values() if x.firm}
        firm |= {(x.shape.fit, x.place.start) for x in one.homes}
        assert packed(*merged(firm)) == _summed(firm), "promises and firm leases collide"
        for other in one.leases.values():
            if other.tier is Tier.GUARANTEED:
                assert any(x.tenant == other.tenant and x.place == other.place for x in one.homes)


def _summed(parts):
    state = 0
    for needs, start in sorted(parts, key=lambda part: part[1]):
        state = added(state, needs, start)
        if state is None:
            return None
    return state
