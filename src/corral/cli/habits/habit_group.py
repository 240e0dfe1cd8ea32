"""Groups of commands that know the aliases of verbs, list without a verb, and suggest nothing that does harm."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from corral.cli.habits.aliases import NOT_SUGGESTED, VERBS, first_word
from corral.cli.habits.quick_values import QuickGroup

_HELP = ("-h", "--help")
#: No first sentence is longer.
WHOLE = 1000
#: A shorter part of a sentence explains nothing.
SHORTEST = 16
#: The key under which the verb is stored that stands for a command's own one.
TYPED_VERB = "corral.typed_verb"


class HabitGroup(QuickGroup):
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return super().get_command(ctx, own_verb(cmd_name, self.commands) or cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = self._click_resolve_command(ctx, args)
        if found is not None and args and args[0] != found.name and args[0] in VERBS:
            ctx.meta[TYPED_VERB] = args[0]
        # usage and messages name the command, not its alias
        return (found.name if found is not None else name), found, rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        shown = [(name, entry) for name, entry in self.commands.items() if not entry.hidden]
        width = formatter.width - 6 - max((len(name) for name, _ in shown), default=0)
        if shown:
            with formatter.section("Commands"):
                formatter.write_dl([(name, summary_of(entry, width)) for name, entry in shown])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """A noun without a verb lists."""
        is_bare = first_word(args, 0) is None and not any(word in _HELP for word in args)
        if is_bare and not self.invoke_without_command and not ctx.resilient_parsing and "ls" in self.commands:
            args = ["ls", *args]
        return super().parse_args(ctx, args)


def summary_of(entry: Any, width: int) -> str:
    """The first sentence of a command's help; without what explains it, if it is wider. It is wrapped and never cut."""
    text = " ".join(str(entry.get_short_help_str(WHOLE)).split())
    if len(text) > width:
        for mark in (": ", "; ", ", with ", ", and "):
            head, found, _ = text.partition(mark)
            if found and SHORTEST <= len(head) <= width:
                return f"{head}."
    return text


def own_verb(typed: str, known: Any) -> str | None:
    """The verb that was meant, if the group has it."""
    if typed in known:
        return typed
    return next((verb for verb in VERBS.get(typed, ()) if verb in known), None)


def suggestion(typed: str, known: Any) -> str | None:
    """A command with a similar name. Commands that end or delete something are not suggested."""
    return similar(typed, [name for name, entry in known.items() if name not in NOT_SUGGESTED and not entry.hidden])


def similar(typed: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant. Leading dashes do not make two names similar."""
    plain = {name.lstrip("-"): name for name in names}
    close = difflib.get_close_matches(typed.lstrip("-"), list(plain), n=1, cutoff=0.7)
    return plain[close[0]] if close else None
