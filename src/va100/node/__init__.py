"""The box around the chips: topology, fabric, MIG, telemetry and faults, in one crash-safe store.

Nothing is here yet; until it is, one process sees one node of its own, without MIG.
"""
