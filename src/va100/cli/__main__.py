"""``python -m va100.cli``."""

from __future__ import annotations

import sys

from va100.cli.main import main

sys.exit(main())
