"""The driver as Python sees it: images, the one crossing into the compiler, the C symbols.

All driver state is native and lives in ``native/driver``; nothing here is on a launch's path.
"""
