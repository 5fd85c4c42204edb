"""Reports: what ran, how long an A100 would take, and what held it back, for people and tools.

Reads the launch report that the driver writes at a program's exit; measures nothing itself.
"""
