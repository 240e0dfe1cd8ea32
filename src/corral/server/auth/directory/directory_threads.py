"""Asks directories on threads of its own: a directory that does not answer delays other sign-ins only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from corral.control.records import ProviderRecord
from corral.server.auth.directory.checks import checks_of
from corral.server.auth.directory.directory import Directory
from corral.server.auth.kinds.provider_kind import Check
from corral.server.auth.outside import Person

Result = TypeVar("Result")

_THREADS = 8


class DirectoryThreads:
    def __init__(self, *, now: Callable[[], float]) -> None:
        self._now = now
        self._sign_ins = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="directory")
        #: lists of all people may take minutes
        self._lists = ThreadPoolExecutor(max_workers=1, thread_name_prefix="directory-list")

    async def person(self, provider: ProviderRecord, secret: str, login: str, password: str) -> Person | None:
        directory = self._directory(provider, secret)
        return await _run(self._sign_ins, lambda: directory.person(login, password))

    async def people(self, provider: ProviderRecord, secret: str) -> list[Person]:
        return await _run(self._lists, self._directory(provider, secret).people)

    async def present(self, provider: ProviderRecord, secret: str, subjects: Collection[str]) -> list[Person]:
        directory = self._directory(provider, secret)
        return await _run(self._lists, lambda: directory.present(subjects))

    async def checks(self, provider: ProviderRecord, secret: str) -> list[Check]:
        directory = self._directory(provider, secret)
        return await _run(self._sign_ins, lambda: checks_of(directory))

    def close(self) -> None:
        for threads in (self._sign_ins, self._lists):
            threads.shutdown(wait=False, cancel_futures=True)

    def _directory(self, provider: ProviderRecord, secret: str) -> Directory:
        return Directory(provider=provider, password=secret, now=self._now)


async def _run(threads: ThreadPoolExecutor, ask: Callable[[], Result]) -> Result:
    return await asyncio.get_running_loop().run_in_executor(threads, ask)
