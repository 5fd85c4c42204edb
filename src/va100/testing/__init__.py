"""CUDA tests without a GPU: the pytest plugin.

``plugin`` is what pytest loads, ``running`` what happens around each test, ``findings`` and
``tally`` what is told of them.  How kernels run, are checked and are priced is elsewhere.
"""
