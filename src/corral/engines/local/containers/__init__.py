"""Containers of the local engine: Podman or Docker, their mounts, and rights to images."""
