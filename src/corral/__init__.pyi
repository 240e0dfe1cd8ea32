from typing import Any

from corral.client import ApiProblem as ApiProblem
from corral.client import AsyncClient as AsyncClient
from corral.client import Call as Call
from corral.client import CallFailed as CallFailed
from corral.client import Client as Client
from corral.client import ClientError as ClientError
from corral.client import Forbidden as Forbidden
from corral.client import LogEnd as LogEnd
from corral.client import LogText as LogText
from corral.client import NotFound as NotFound
from corral.client import NotSignedIn as NotSignedIn
from corral.client import ServerUnreachable as ServerUnreachable

def load_ipython_extension(shell: Any) -> None: ...
