"""Facts: chips, boards, MIG profiles, attributes, clouds, each number with its source.

Structure is stored, headline figures are derived (:mod:`va100.spec.rates`).  Nothing here
measures, estimates or executes; only the standard library is used.
"""
