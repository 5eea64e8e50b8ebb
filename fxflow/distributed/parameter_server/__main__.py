"""``python -m fxflow.distributed.parameter_server`` runs one server: see `command`."""

import sys

from fxflow.distributed.parameter_server.command import main

sys.exit(main())
