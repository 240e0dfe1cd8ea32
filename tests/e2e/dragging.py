"""Dragging as a hand does it: not before everything stands still, and not faster than a board can follow."""

from __future__ import annotations

import contextlib

from playwright.sync_api import FloatRect, Locator, Page, expect

#: between two looks, and between what a hand does one after the other
MOMENT_MS = 60
_LOOKS = 50
_PRESSES = 3


def drag(page: Page, tile: Locator, target: Locator) -> None:
    """Press, pull away, over the target, let go."""
    pick_up(page, tile)
    move_over(page, target)
    page.mouse.up()


def pick_up(page: Page, tile: Locator) -> None:
    x, y = _middle(_at_rest(page, tile))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 12, y + 12, steps=3)
    page.wait_for_timeout(MOMENT_MS)


def move_over(page: Page, target: Locator) -> None:
    """The place of the target during the drag: columns make room for the dragged item."""
    page.mouse.move(*_middle(_at_rest(page, target)), steps=8)
    page.wait_for_timeout(MOMENT_MS)


def carry_right(page: Page, target: Locator) -> None:
    """By keyboard, to the next column. A key before the board listens is lost: a person looks, and presses again."""
    for _ in range(_PRESSES):
        page.keyboard.press("ArrowRight")
        with contextlib.suppress(AssertionError):
            expect(target).to_have_attribute("data-over", "accepts", timeout=5_000)
            return
    raise AssertionError(f"the board does not carry it to {target}")


def _at_rest(page: Page, thing: Locator) -> FloatRect:
    """The place once it is the same twice: pages move elements when others appear."""
    before = None
    for _ in range(_LOOKS):
        now = thing.bounding_box()
        if now is not None and now == before:
            return now
        before = now
        page.wait_for_timeout(MOMENT_MS)
    raise AssertionError(f"it does not stand still: {thing}")


def _middle(box: FloatRect) -> tuple[float, float]:
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
