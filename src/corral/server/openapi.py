"""`python -m corral.server.openapi` prints the API's description.

It is kept in docs/reference/openapi.json; a test proves that it is current.
"""

from __future__ import annotations

import sys

from corral.server.app import bare_app
from corral.server.description import describe, dumps

if __name__ == "__main__":
    sys.stdout.write(dumps(describe(bare_app())))
