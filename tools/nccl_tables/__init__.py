"""Tables of NCCL's calls and of what collectives cost, and the generator of what follows."""
