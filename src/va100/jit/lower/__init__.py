"""Instruction families to LLVM text: one module a group, none knowing another."""
