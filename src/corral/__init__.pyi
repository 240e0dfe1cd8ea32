from typing import Any

from corral.client.async_client import AsyncClient as AsyncClient
from corral.client.client import Client as Client

def load_ipython_extension(shell: Any) -> None: ...
