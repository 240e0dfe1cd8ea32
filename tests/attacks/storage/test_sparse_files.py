"""Lengths that a job only claims: files that are holes of terabytes, and checkpoints made of them."""

from __future__ import annotations

import asyncio
import base64

import httpx
import pytest

from corral.checkpoint.layout import Manifest, SealedFile, encode_manifest
from corral.core.storage.checksums import checksum_of
from tests.attacks.conftest import SharedMachine
from tests.integration.waiting import wait_until

pytestmark = pytest.mark.slow

HOLE_BYTES = 2 << 40
REQUESTS = 40


def volume(machine: SharedMachine, user: str, name: str, size: str) -> str:
    with machine.server.http(user) as http:
        body = {"name": name, "type": "filesystem", "size": size}
        made = str(http.post("/volumes", json=body).raise_for_status().json()["id"])
        wait_until(lambda: http.get(f"/volumes/{made}").json()["state"] == "ready", f"{name} is ready")
    return made


def with_hole(machine: SharedMachine, name: str, size: str) -> str:
    """A volume of eve's with a file that has no bytes on the disk."""
    made = volume(machine, "eve", name, size)
    script = f"truncate -s {HOLE_BYTES} /data/hole"
    ended, log = machine.run("eve", script, mounts=[f"{name}:/data"])
    assert ended["state"] == "completed", log
    return made


def test_a_file_that_is_longer_than_its_volume_is_not_read(machine: SharedMachine) -> None:
    made = with_hole(machine, "small", "1GiB")
    with machine.server.http("eve") as http:
        for way in ("checksum", "content"):
            answer = http.get(f"/volumes/{made}/files/{way}", params={"path": "hole"})
            assert answer.status_code == 409, answer.text
            assert "2TiB" in answer.json()["detail"]
            assert "1GiB" in answer.json()["detail"]
        listed = http.get(f"/volumes/{made}/files").raise_for_status().json()["items"]
    assert [(entry["path"], entry["size"]) for entry in listed] == [("hole", HOLE_BYTES)]


def test_checksums_of_holes_delay_no_other_user(machine: SharedMachine) -> None:
    made = with_hole(machine, "large", "4TiB")
    mine = volume(machine, "ann", "mine", "1GiB")
    content = b"results\n" * 1000
    put = {"path": "results", "X-Checksum": checksum_of([content])}
    with machine.server.http("ann") as http:
        http.put(
            f"/volumes/{mine}/files/content",
            params={"path": "results"},
            content=content,
            headers={"X-Checksum": put["X-Checksum"]},
        ).raise_for_status()

    async def attack() -> None:
        eve = {"Authorization": f"Bearer {machine.server.token('eve')}"}
        url = f"{machine.server.url}/api/v1/volumes/{made}/files/checksum?path=hole"
        limits = httpx.Limits(max_connections=REQUESTS)
        async with httpx.AsyncClient(headers=eve, timeout=None, verify=False, trust_env=False, limits=limits) as client:
            asked = [asyncio.create_task(client.get(url)) for _ in range(REQUESTS)]
            await asyncio.sleep(1.0)
            try:
                await asyncio.to_thread(work_of_ann)
            finally:
                for each in asked:
                    each.cancel()
                await asyncio.gather(*asked, return_exceptions=True)

    def work_of_ann() -> None:
        """Everything that reads, within the time-out of an ordinary client."""
        ended, log = machine.run("ann", "echo hello; echo more > $CORRAL_OUTPUT_DIR/file")
        assert (ended["state"], log) == ("completed", "hello\n")
        with machine.server.http("ann") as http:
            found = http.get(f"/volumes/{mine}/files/checksum", params={"path": "results"}).raise_for_status().json()
            assert found["checksum"] == put["X-Checksum"]
            assert http.get(f"/volumes/{mine}/files/content", params={"path": "results"}).content == content
            job = f"/jobs/{ended['id']}"
            assert len(http.get(f"{job}/logs/search", params={"q": "hello"}).raise_for_status().json()["items"]) == 1
            assert http.get(f"{job}/logs/download").raise_for_status().text == "hello\n"
            assert http.get(f"{job}/files/content", params={"path": "file"}).raise_for_status().text == "more\n"
            assert http.get(f"{job}/files/content").raise_for_status().content[:2] == b"\x1f\x8b"

    asyncio.run(attack())
    # Eve's clients have left: what they asked for is given up, and she is served again.
    with machine.server.http("eve") as http:

        def is_served() -> bool:
            return http.get(f"/volumes/{made}/files").status_code == 200

        wait_until(is_served, "eve is served again")


def test_forged_checkpoints_hold_neither_the_readers_nor_gpus(machine: SharedMachine) -> None:
    """Verifying them would take hours: those of others are verified meanwhile, and a stop gives the GPUs back."""
    manifest = Manifest(
        kind="files",
        step=1,
        at=1.0,
        attempt=1,
        rank=0,
        world=1,
        files=(SealedFile(path="state", bytes=HOLE_BYTES, blake2b="0" * 64),),
    )
    text = base64.b64encode(encode_manifest(manifest)).decode()
    place = "$CORRAL_CHECKPOINT_DIR/save-000001-step-1"
    forge = f"mkdir -p {place}; truncate -s {HOLE_BYTES} {place}/state; echo {text} | base64 -d > {place}/manifest.json"
    forged = [machine.submit("eve", forge, name=f"forged-{number}", gpus=1) for number in range(6)]
    for job in forged:
        machine.wait("eve", job, "completed")
    # A checkpoint as programs make them, small and whole.
    state = b"weights"
    honest = Manifest(
        kind="files",
        step=1,
        at=1.0,
        attempt=1,
        rank=0,
        world=1,
        files=(SealedFile(path="state", bytes=len(state), blake2b=checksum_of([state])),),
    )
    text = base64.b64encode(encode_manifest(honest)).decode()
    save = f"mkdir -p {place}; printf weights > {place}/state; echo {text} | base64 -d > {place}/manifest.json"
    script = f'test -z "$CORRAL_RESUME_FROM" || {{ echo from $CORRAL_RESUME_FROM; exit 0; }}; {save}'
    saved, _ = machine.run("ann", script, name="honest", gpus=1)

    with machine.server.http("eve") as http:
        for job in forged:
            http.post(f"/jobs/{job}/start").raise_for_status()
        wait_until(
            lambda: all(machine.job("eve", job)["state"] == "starting" for job in forged), "they wait to be verified"
        )
    with machine.server.http("ann") as http:
        http.post(f"/jobs/{saved['id']}/start").raise_for_status()
    wait_until(lambda: machine.job("ann", saved["id"])["attempt"] == 2, "it starts again")
    assert machine.wait("ann", saved["id"])["state"] == "completed"
    assert "save-000001-step-1" in machine.log("ann", saved["id"])

    with machine.server.http("eve") as http:
        for job in forged:
            http.post(f"/jobs/{job}/stop").raise_for_status()
    for job in forged:
        assert machine.wait("eve", job)["state"] == "stopped"
