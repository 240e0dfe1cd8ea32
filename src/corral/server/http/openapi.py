"""`python -m corral.server.http.openapi` prints the API's description.

It is stored in docs/reference/openapi.json; a test checks that it is current.
"""

from __future__ import annotations

import sys

from corral.server.http.api_description import describe, dumps
from corral.server.http.app import bare_app

if __name__ == "__main__":
    sys.stdout.write(dumps(describe(bare_app())))
