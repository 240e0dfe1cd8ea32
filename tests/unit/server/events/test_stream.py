"""The event feed: in order, exactly once, whatever happens around it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from corral.control.live.unit_of_work import Caller
from corral.control.ports import Round
from corral.control.records import EventRecord, Function
from corral.server.events import stream as stream_module
from corral.server.events.followers import PACE_SECONDS_EACH, Follower, Followers
from corral.server.events.stream import EventFeed, Update, sse
from corral.server.events.visibility import may_see_event


def event(number: int) -> EventRecord:
    return EventRecord(id=number, at=float(number), actor="ann", action="job.submitted", subject=f"j-{number}")


class Log:
    """Committed events."""

    def __init__(self) -> None:
        self.events: list[EventRecord] = []
        self.reads = 0

    def read_after(self, event_id: int, limit: int) -> list[EventRecord]:
        self.reads += 1
        return [e for e in self.events if e.id > event_id][:limit]


def test_followers_at_different_places_get_everything_after_theirs_once_and_in_order() -> None:
    log = Log()
    log.events = [event(n) for n in range(1, 1001)]

    async def story() -> None:
        feed = EventFeed(log.read_after, kept=64)
        feed.attach(asyncio.get_running_loop())

        async def take(after: int, until: int) -> list[int]:
            got: list[int] = []
            async for update in feed.follow(after, ping_seconds=5):
                got.extend(e.id for e in update.events)
                await asyncio.sleep(0)
                if got and got[-1] >= until:
                    return got
            return got

        followers = [asyncio.create_task(take(after, 3000)) for after in (0, 7, 999, 1000)]

        def commit() -> None:
            for n in range(1001, 3001):
                log.events.append(event(n))
                feed.publish([log.events[-1]])

        writer = threading.Thread(target=commit)
        writer.start()
        results = await asyncio.wait_for(asyncio.gather(*followers), 20)
        writer.join()
        for after, got in zip((0, 7, 999, 1000), results, strict=True):
            assert got == list(range(after + 1, 3001))

    asyncio.run(story())


def test_recent_news_need_no_store() -> None:
    log = Log()

    async def story() -> None:
        feed = EventFeed(log.read_after)
        feed.attach(asyncio.get_running_loop())
        feed.publish([event(10), event(11), event(12)])
        await asyncio.sleep(0)
        update = await anext(aiter(feed.follow(10)))
        assert [e.id for e in update.events] == [11, 12]
        assert log.reads == 0

    asyncio.run(story())


def test_silence_brings_pings_and_closing_ends_followers() -> None:
    async def story() -> None:
        feed = EventFeed(Log().read_after)
        feed.attach(asyncio.get_running_loop())
        stream = feed.follow(0, ping_seconds=0.01)
        assert await anext(aiter(stream)) == Update()
        feed.close()
        assert [update async for update in stream] == []

    asyncio.run(story())


def test_followers_are_notified_of_new_readings_once_and_later_followers_never() -> None:
    log = Log()
    log.events = [event(1)]

    async def story() -> None:
        feed = EventFeed(log.read_after)
        feed.attach(asyncio.get_running_loop())
        stream = feed.follow(1, ping_seconds=0.05)
        assert await anext(stream) == Update()
        feed.take(Round(at=5.0))
        assert await anext(stream) == Update(readings_at=5.0)
        assert await anext(stream) == Update()
        late = feed.follow(1, ping_seconds=0.05)
        assert await anext(late) == Update()

    asyncio.run(story())


def test_rounds_that_come_quickly_are_sent_as_one_and_the_last_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "TICK_SECONDS", 0.2)
    log = Log()

    async def story() -> None:
        feed = EventFeed(log.read_after)
        feed.attach(asyncio.get_running_loop())
        stream = feed.follow(0, ping_seconds=10)
        hearing = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.05)
        feed.take(Round(at=1.0))
        assert await hearing == Update(readings_at=1.0)
        begun = asyncio.get_running_loop().time()
        for at in (2.0, 3.0, 4.0):
            feed.take(Round(at=at))
        assert await anext(stream) == Update(readings_at=4.0)
        assert asyncio.get_running_loop().time() - begun > 0.1

    asyncio.run(story())


def test_a_slow_follower_hears_events_and_readings_together() -> None:
    log = Log()
    log.events = [event(1)]

    async def story() -> None:
        feed = EventFeed(log.read_after)
        feed.attach(asyncio.get_running_loop())
        stream = feed.follow(1, ping_seconds=0.05)
        assert await anext(stream) == Update()
        feed.publish([event(2)])
        feed.take(Round(at=9.0))
        await asyncio.sleep(0.05)
        assert await anext(stream) == Update(events=(event(2),), readings_at=9.0)

    asyncio.run(story())


def test_an_event_on_the_wire() -> None:
    assert sse("job.submitted", {"a": "x\ny"}, 7) == 'id: 7\nevent: job.submitted\ndata: {"a":"x\\ny"}\n\n'


def test_events_are_visible_by_owner_and_function() -> None:
    own = EventRecord(id=1, at=0, actor="corral", action="job.started", subject="j-1", owner="ann")
    fleet = EventRecord(id=2, at=0, actor="op", action="node.cordoned", subject="n1")
    secret = EventRecord(id=3, at=0, actor="op", action="user.created", subject="bob")
    ann, bob = Caller(name="ann"), Caller(name="bob")
    assert [may_see_event(e, ann) for e in (own, fleet, secret)] == [True, True, False]
    assert [may_see_event(e, bob) for e in (own, fleet, secret)] == [False, True, False]
    curious = Caller(name="bob", functions=frozenset({Function.SEE_OTHERS_JOBS}))
    assert [may_see_event(e, curious) for e in (own, fleet, secret)] == [True, True, False]
    assert all(may_see_event(e, Caller(name="op", is_operator=True)) for e in (own, fleet, secret))


def test_the_pause_between_rounds_grows_with_the_followers_and_has_no_fixed_part() -> None:
    async def pause_for(count: int) -> float:
        followers = Followers()
        loop = asyncio.get_running_loop()
        delays: list[float] = []
        for _ in range(count):
            followers.add(Follower(ping_seconds=60))
        followers.wake_soon()
        while followers._next_round is not None:
            await asyncio.sleep(0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "call_later", lambda delay, *_: delays.append(delay))
            patch.setattr(loop, "time", lambda: followers._last_round)
            followers.wake_soon()
        return delays[0]

    async def story() -> None:
        assert await pause_for(1) == pytest.approx(PACE_SECONDS_EACH)
        assert await pause_for(500) == pytest.approx(500 * PACE_SECONDS_EACH)

    asyncio.run(story())
