"""The tables of aliases: other words for commands, nouns and verbs, and the command line with corral's own words.

An alias runs the same command with the same options; no alias turns a word into an action that does more. The tables
hold names only, so that reading a command line loads no command. Tests compare them with the commands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Options before the command that take a value.
VALUED_OPTIONS = frozenset({"-o", "--output", "--server", "--token"})

#: Options that may stand before a verb or a name, and take no value.
PLAIN_OPTIONS = frozenset({"--no-color", "-y", "--yes"})

#: Nouns, as the commands are named, with the other spellings.
NOUNS: Mapping[str, tuple[str, ...]] = {
    "alert": ("alerts",),
    "app": ("apps",),
    "backup": ("backups",),
    "budget": ("budgets",),
    "channel": ("channels",),
    "checkpoints": (),
    "cluster": ("clusters",),
    "dataset": ("datasets",),
    "drill": ("drills",),
    "health": ("health-check", "health-checks"),
    "estimates": ("estimate",),
    "events": ("event",),
    "files": ("file",),
    "flavor": ("flavors", "flavour", "flavours"),
    "gpus": ("gpu",),
    "group": ("groups",),
    "image": ("images",),
    "jobs": ("job", "pod", "pods"),
    "key": ("keys",),
    "maintenance": ("maintenances",),
    "licence": ("licences", "license", "licenses"),
    "nodes": ("node",),
    "object-store": ("object-stores",),
    "package": ("packages",),
    "permission-group": ("permission-groups",),
    "pool": ("pools",),
    "preset": ("presets",),
    "provider": ("providers",),
    "queue": ("queues",),
    "quota": ("quotas",),
    "receipts": ("receipt",),
    "registry": ("registries",),
    "report": ("reports",),
    "reservation": ("reservations",),
    "scores": ("score",),
    "secret": ("secrets",),
    "target": ("targets",),
    "token": ("tokens",),
    "user": ("users",),
    "volume": ("volumes",),
    "whatif": ("what-if",),
    "workbench": ("workbenches",),
}

#: Other words for commands, with the words that they stand for.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    # docker, kubectl, ls(1)
    "ps": ("jobs",),
    "ls": ("jobs",),
    "list": ("jobs",),
    "history": ("jobs", "-a"),
    "cancel": ("stop",),
    "kill": ("stop",),
    "delete": ("rm",),
    "remove": ("rm",),
    "describe": ("show",),
    "inspect": ("show",),
    "info": ("about",),
    "log": ("logs",),
    "attach": ("logs", "-f"),
    "apply": ("submit",),
    "exec": ("shell",),
    "port-forward": ("tunnel",),
    "create": ("submit",),
    "cordon": ("nodes", "cordon"),
    "uncordon": ("nodes", "uncordon"),
    "drain": ("nodes", "drain"),
    # Slurm
    "sbatch": ("slurm-compat", "sbatch"),
    "squeue": ("slurm-compat", "squeue"),
    "scancel": ("slurm-compat", "scancel"),
    "sinfo": ("slurm-compat", "sinfo"),
    "sacct": ("slurm-compat", "sacct"),
    "srun": ("run",),
    # nvidia-smi and shells
    "nvidia-smi": ("gpus",),
    "explain": ("why",),
    "analyze": ("analyse",),
    "analysis": ("analyse",),
}

#: Verbs that kubectl puts before a noun, with corral's verb behind the noun. `get` lists without a name.
VERBS_BEFORE_NOUNS: Mapping[str, str] = {
    "get": "show",
    "list": "ls",
    "describe": "show",
    "inspect": "show",
    "delete": "rm",
    "remove": "rm",
    "create": "create",
}

#: Other words for verbs of a noun. The first one that the noun has is meant; a verb of its own always wins.
VERBS: Mapping[str, tuple[str, ...]] = {
    "list": ("ls",),
    "get": ("show", "ls"),
    "describe": ("show",),
    "inspect": ("show",),
    "info": ("show",),
    "delete": ("rm",),
    "remove": ("rm",),
    "del": ("rm",),
    "add": ("create",),
    "new": ("create",),
    "create": ("add", "set"),
    "update": ("edit", "set"),
    "modify": ("edit", "set"),
    "set": ("edit",),
    "revoke": ("rm",),
    "shell": ("ssh",),
}

#: What `corral job VERB` does: commands for jobs have no noun.
JOB_VERBS: Mapping[str, str] = {
    **{verb: verb for verb in ("submit", "run", "show", "why", "logs", "stop", "start", "requeue", "resize", "extend")},
    **{verb: verb for verb in ("edit", "keep", "rm", "clone", "files", "checkpoints", "checkpoint")},
    **{verb: verb for verb in ("pin", "unpin", "move", "wait", "restart", "curves", "shell")},
    "exec": "shell",
    "ls": "jobs",
    "list": "jobs",
    "get": "show",
    "create": "submit",
    "cancel": "stop",
    "kill": "stop",
    "delete": "rm",
    "remove": "rm",
    "describe": "show",
    "inspect": "show",
    "log": "logs",
}

#: Commands that are never suggested for a mistyped word: they end or delete something, or simulate faults.
NOT_SUGGESTED = frozenset({"drill", "rm", "stop", "release", "requeue", "rm-file", "gc", "lose-gpu", "lose-node"})

_NOUN_OF = {spelling: noun for noun, others in NOUNS.items() for spelling in (noun, *others)}


def familiar(typed: Sequence[str]) -> list[str]:
    """The command line with corral's own words for its first words; options keep their places."""
    place = first_word(typed, 0)
    if place is None:
        return list(typed)
    before, word, rest = list(typed[:place]), typed[place], list(typed[place + 1 :])
    if word == "help":
        return [*before, *familiar(rest), "--help"]
    return before + _translated(word, rest)


def first_word(typed: Sequence[str], start: int) -> int | None:
    """The place of the first word that is neither an option nor its value, if it comes before `--` and before an option
    of a command: what follows such an option may be its value."""
    place = start
    while place < len(typed) and typed[place] != "--":
        word = typed[place]
        if not word.startswith("-"):
            return place
        if word in VALUED_OPTIONS:
            place += 2
        elif word in PLAIN_OPTIONS or word.partition("=")[0] in VALUED_OPTIONS:
            place += 1
        else:
            return None
    return None


def _translated(word: str, rest: list[str]) -> list[str]:
    following = first_word(rest, 0)
    if word in VERBS_BEFORE_NOUNS and following is not None:
        found = _noun_first(word, rest, following)
        if found is not None:
            return found
    noun = _NOUN_OF.get(word)
    if noun == "jobs":
        if following is not None and rest[following] in JOB_VERBS:
            return [JOB_VERBS[rest[following]], *rest[:following], *rest[following + 1 :]]
        return ["jobs", *rest]
    if noun is not None:
        return [noun, *rest]
    if word == "get":
        return ["show", *rest]
    return [*COMMANDS.get(word, (word,)), *rest]


def _noun_first(verb: str, rest: list[str], place: int) -> list[str] | None:
    """`get nodes`, `describe node NAME`: the noun and its verb. None if the word may be the name of a job."""
    noun = _NOUN_OF.get(rest[place])
    if noun is None:
        return ["status", *rest[:place], *rest[place + 1 :]] if (verb, rest[place]) == ("get", "all") else None
    others = [*rest[:place], *rest[place + 1 :]]
    is_named = first_word(others, 0) is not None
    own = VERBS_BEFORE_NOUNS[verb]
    # `describe jobs` describes all of them; `describe queue` may mean a job of that name
    if not is_named and (verb in ("get", "list") or (own == "show" and rest[place].endswith("s"))):
        return [noun, *others]
    if not is_named:
        return None
    return [JOB_VERBS[own], *others] if noun == "jobs" else [noun, own, *others]
