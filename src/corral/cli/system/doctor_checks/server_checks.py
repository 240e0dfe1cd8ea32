"""Checks of the server that this command talks to: its version, its parts, the sign-in and the clock."""

from __future__ import annotations

from corral.cli.entry import own_version
from corral.cli.system.doctor_checks.findings import Finding, fail, ok, warn
from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Terminal
from corral.client.http.errors import ClientError, NotSignedIn, ServerUnreachable

CLOCK_SECONDS = 5.0


def server_reachable(terminal: Terminal) -> Finding:
    try:
        with terminal.client() as client:
            about = client.system.about()
    except ServerUnreachable as error:
        return fail("Server", error.message, "Start it with `corral up`, or set CORRAL_SERVER.")
    except NotSignedIn:
        return ok("Server", f"{terminal.server} answers")
    except ClientError as error:
        return fail("Server", error.message, error.hint or "See the server's log.")
    if about["version"] != own_version():
        return warn(
            "Server",
            f"{terminal.server} has version {about['version']}, this command {own_version()}",
            "Use the same version on both sides.",
        )
    return ok(
        "Server", f"{terminal.server}, version {about['version']}, up {formats.duration(about['uptime_seconds'])}"
    )


def platform_parts(terminal: Terminal) -> Finding:
    """The parts of the platform, as the server reports them."""
    try:
        with terminal.client() as client:
            failing = [part for part in client.system.about()["parts"] if not part["healthy"]]
            is_operator = client.people.me()["role"] == "operator"
    except ClientError:
        return warn("Parts", "not checked: the server did not answer")
    if not failing:
        return ok("Parts", "every part of the platform works")
    fix = "`corral cluster` shows since when; `corral cluster log PART` its log." if is_operator else "Ask an operator."
    return fail("Parts", "; ".join(f"{part['name']}: {part['detail']}" for part in failing), fix)


def signed_in(terminal: Terminal) -> Finding:
    try:
        with terminal.client() as client:
            me = client.people.me()
    except NotSignedIn:
        return fail("Sign-in", "not signed in", "Run `corral login`.")
    except ServerUnreachable:
        return warn("Sign-in", "not checked: the server cannot be reached")
    except ClientError as error:
        return fail("Sign-in", error.message, error.hint or "Run `corral login`.")
    if me["must_change_password"]:
        return warn("Sign-in", f"{me['name']} still has the one-time password", "Run `corral passwd`.")
    return ok("Sign-in", f"{me['name']} ({me['role']})")


def clock(terminal: Terminal) -> Finding:
    """Tables show times relative to this machine's clock, so it must agree with the server's."""
    try:
        with terminal.client() as client:
            before = terminal.now()
            about = client.system.about()
    except ClientError:
        return warn("Clock", "not compared: the server did not answer")
    server_now = formats.moment(about["started_at"]) + about["uptime_seconds"]
    off = server_now - (before + terminal.now()) / 2
    if abs(off) > CLOCK_SECONDS:
        return warn("Clock", f"the server's clock is {off:+.0f} s off from this machine's", "Let NTP set both clocks.")
    return ok("Clock", "agrees with the server's")
