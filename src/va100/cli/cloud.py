"""``va100 cloud``: a GPU cloud on virtual nodes, and everything that one does with one.

The verbs that serve a site are in ``cloud_serve``, those that ask one in ``cloud_client``, the
simulator's in ``cloud_simulate``; each is imported only when it is asked for.
"""

from __future__ import annotations

import argparse
import sys
from types import ModuleType

from va100.errors import BadRequest, Va100Error

MISUSED = 2


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    # Imported here: the verbs' parsers are light, what they do is not.
    from va100.cli import (  # noqa: PLC0415
        cloud_client,
        cloud_serve,
        cloud_simulate,
        cloud_slurm,
    )

    parser = subparsers.add_parser(
        "cloud",
        help="a multi-tenant GPU cloud on virtual nodes: serve, launch, bill, simulate",
        description="A GPU cloud on virtual nodes. `va100 cloud serve` starts one on this machine; "
        "register in a browser or with `va100 cloud register`, then launch.",
    )
    verbs = parser.add_subparsers(dest="cloud_verb", metavar="VERB", required=True)
    cloud_serve.add_parsers(verbs)
    cloud_client.add_parsers(verbs)
    cloud_simulate.add_parsers(verbs)
    cloud_slurm.add_parsers(verbs)


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks; the result is the exit status."""
    module: ModuleType = args.cloud_module
    try:
        status: int = module.run(args)
    except BadRequest as error:
        sys.stderr.write(f"va100 cloud {args.cloud_verb}: {error}\n")
        return MISUSED
    except Va100Error as error:
        sys.stderr.write(f"va100 cloud {args.cloud_verb}: {error}\n")
        return 1
    return status
