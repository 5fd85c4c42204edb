"""A cloud of virtual nodes: tenants, quotas, leases, placement, money.

Nothing is here yet.  It will reach a machine only through :mod:`va100.assembly`.
"""
