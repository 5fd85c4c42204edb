"""Instruction families to LLVM text, one module a group of families; they do not know each other."""
