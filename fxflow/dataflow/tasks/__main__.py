"""``python -m fxflow.dataflow.tasks`` runs one task: see `worker`."""

import sys

from fxflow.dataflow.tasks.command import main

sys.exit(main())
