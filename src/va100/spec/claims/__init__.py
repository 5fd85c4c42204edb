"""Checks what others say about GPUs: reads tables and sentences, compares, explains.

``claim`` holds the words, ``quantity`` and ``labels`` read numbers and row names, ``tables`` and
``prose`` turn a text into claims, ``judge`` compares them with the facts, ``review`` does it all.
"""
