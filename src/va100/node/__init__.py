"""The box around the chips: kinds of node, their shared state, the geometry of MIG.

The state itself is native (``native/node``), since every process that uses a card reports to it;
:mod:`store` is its door, :mod:`kinds` the table of nodes that people ask for by name.
"""
