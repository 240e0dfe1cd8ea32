"""`python -m corral.server.http.openapi` prints the API's description.

It is stored in docs/reference/openapi.json; a test checks that it is current.
"""

from __future__ import annotations

import sys

from corral.server.http.app import bare_app
from corral.server.http.description.api_description import describe, dumps

if __name__ == "__main__":
    sys.stdout.write(dumps(describe(bare_app())))
