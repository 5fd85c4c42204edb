"""A profile as one page for people: charts, tables and source lines, without anything from outside.

Every number is one of :mod:`va100.profile.quantities`; how the page looks is in ``style.css``.
"""
