"""The caller's own SSH public keys."""

from __future__ import annotations

from fastapi import Response

from corral.control.people import ssh_keys
from corral.server.auth.callers import AnyCaller, Context
from corral.server.auth.secrets import new_key_id
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.people.permissions import SshKeyCreate, SshKeyView, ssh_key_view

router = resource_router("/me/ssh-keys", "me")


@router.get("", operation_id="list_ssh_keys", responses=problems())
async def list_ssh_keys(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[SshKeyView]:
    """The caller's SSH keys for workbenches."""
    mine = await context.read(lambda tables: tables.ssh_keys.of_user(caller.name))
    page = page_of(mine, key=lambda key: (round(key.created_at * 1000), key.id), limit=limit, cursor=cursor)
    return ListView(items=[ssh_key_view(key) for key in page.items], next_cursor=page.next_cursor)


@router.post("", status_code=201, operation_id="add_ssh_key", responses=problems(403, 409))
async def add_ssh_key(body: SshKeyCreate, caller: AnyCaller, context: Context) -> SshKeyView:
    """Add a public key in OpenSSH's format: ed25519, ecdsa, rsa from 2048 bits, or of a security device."""
    key = await context.execute(ssh_keys.add, caller, new_key_id(), body.name, body.public_key)
    await context.steps.do(caller.name, context.workbenches.sync_keys, caller.name)
    return ssh_key_view(key)


@router.delete("/{key}", status_code=204, operation_id="delete_ssh_key", responses=problems(403, 404))
async def remove_ssh_key(key: str, caller: AnyCaller, context: Context) -> Response:
    """Delete a key. After the answer, no workbench accepts it any more."""
    await context.execute(ssh_keys.remove, caller, key)
    await context.steps.do(caller.name, context.workbenches.sync_keys, caller.name)
    return Response(status_code=204)
