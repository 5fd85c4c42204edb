"""Time: what a counted launch would take on a chip.

Pure functions from counters and facts to seconds.  Nothing here sees a program, memory or a
clock, and nothing here can change a result.  This is a first estimate: occupancy, waves, one
roofline for each pipe and each level of memory, latency, and the floor of a launch.
"""
