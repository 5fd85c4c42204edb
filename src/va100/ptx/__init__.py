"""The PTX language: text to tree, instruction table, rules, control flow.

``parser.parse`` reads a text, ``verify.verify`` checks it, ``cfg.build_flow`` readies one
function for an engine, ``isa.decode`` reads an opcode string.  Nothing here executes anything.
"""
