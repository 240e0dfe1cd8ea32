"""The script that reads a Git repository: on the server at a submission, and on the node in front of a job's program.

It is a short shell script, so that neither the node nor an image needs corral: they need `git`, and for keys `ssh` and
`ssh-agent`. Git gets no settings, hooks, helpers or keys of the machine or of the job, starts no programs that an
address names, follows no redirect to another host, and fetches no submodules. A key goes from the environment into an
agent, a token into a helper of git's: neither is in an argument, in a file or in the log, and the program that the
script becomes does not have them in its environment. Known hosts and certificates are files: they are public.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

#: The exit code of an attempt whose source cannot be fetched; its log has the reason.
FAILED = 97
#: How the reason begins, in the log and in the output on the server.
REASON_MARK = "corral: git: "

SCRIPT = r"""
mode=$1 url=$2 ref=$3 commit=$4 directory=$5
shift 5
key=${CORRAL_GIT_KEY-} token=${CORRAL_GIT_TOKEN-} user=${CORRAL_GIT_USER-git} address=${CORRAL_GIT_PINNED-}
hosts=${CORRAL_GIT_HOSTS-} learn=${CORRAL_GIT_LEARN-} authority=${CORRAL_GIT_AUTHORITY-}
unset CORRAL_GIT_KEY CORRAL_GIT_TOKEN CORRAL_GIT_USER CORRAL_GIT_PINNED CORRAL_GIT_HOSTS CORRAL_GIT_LEARN \
  CORRAL_GIT_AUTHORITY
own= agent=
clean() {
  if [ -n "$agent" ]; then kill "$agent" 2>/dev/null; fi
  if [ -n "$own" ]; then rm -rf "$own"; fi
}
fail() { printf 'corral: git: %s\n' "$1"; exit 97; }
trap clean EXIT
trap 'exit 143' TERM INT HUP
need() { command -v "$1" >/dev/null 2>&1 || fail "the program $1 is not installed here, on the node or in the image"; }
decoded() { printf '%s' "$1" | base64 -d; }

# Reads what git has said, and says it in a sentence.
explain() {
  said=$(tail -c 4000 "$own/said" | tr -d '\000' | tr '[:cntrl:]' ' ')
  case $said in
    *"Host key verification failed"*|*"HOST IDENTIFICATION HAS CHANGED"*)
      fail "the host of $url has another SSH key than the known one" ;;
    *"ould not resolve host"*) fail "the host of $url is not known" ;;
    *"Permission denied (publickey"*|*"Permission denied, please try again"*)
      if [ -n "$key" ]; then fail "the key was refused by the host of $url"; fi
      fail "$url needs a key: store one with corral secret set, and name it with --git-secret" ;;
    *"could not read Username"*|*"terminal prompts disabled"*)
      fail "$url does not exist, or needs a token: store one with corral secret set, and name it with --git-secret" ;;
    *"Authentication failed"*|*"error: 401"*|*"error: 403"*|*"access denied"*|*"HTTP 403"*)
      if [ -n "$token$key" ]; then fail "the token was refused by the host of $url"; fi
      fail "$url needs a token: store one with corral secret set, and name it with --git-secret" ;;
    *"not our ref"*|*"unadvertised object"*|*"ouldn't find remote ref"*|*"not a valid object"*|*"bad object"*)
      fail "the commit $commit is not in $url any more" ;;
    *"not found"*|*"does not appear to be a git repository"*|*"does not exist"*|*"no such repository"*|\
    *"could not be found"*|*"error: 404"*)
      fail "there is no repository at $url that can be read" ;;
    *"edirect"*|*"error: 30"[12378]*) fail "$url leads elsewhere: give the address where the repository is" ;;
    *"ertificate"*) fail "the certificate of the host of $url is not trusted" ;;
    *"onnection refused"*|*"imed out"*|*"ailed to connect"*|*"o route to host"*|*"etwork is unreachable"*|*"too slow"*)
      fail "the host of $url does not answer" ;;
    *"No space left"*|*"uota exceeded"*) fail "there is no room for the repository" ;;
  esac
  fail "$url cannot be read: $(printf '%s' "$said" | tail -c 300)"
}

# Runs git; what it says goes into a file. An assignment in front of it reaches git alone.
run() {
  [ -z "$bundle" ] || set -- -c "http.sslCAInfo=$bundle" "$@"
  [ -z "$resolved" ] || set -- -c "http.curloptResolve=$resolved" "$@"
  git -c credential.helper= -c credential.helper="$helper" -c core.hooksPath=/dev/null -c core.fsmonitor=false \
    -c core.askPass= -c gc.auto=0 -c maintenance.auto=false -c safe.directory='*' -c submodule.recurse=false \
    -c fetch.recurseSubmodules=false -c advice.detachedHead=false -c init.defaultBranch=main \
    -c http.followRedirects=false -c http.lowSpeedLimit=1000 -c http.lowSpeedTime=60 \
    -c http.sslVerify=true \
    -c protocol.allow=never -c protocol.https.allow=always -c protocol.http.allow=always -c protocol.ssh.allow=always \
    "$@" </dev/null 2>"$own/said"
}

# The settings of git and of the SSH client; called in a subshell, so that the program does not inherit them.
settle() {
  need git
  for name in $(env | sed -n 's/^\(\(GIT\|SSH\)_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$name"; done
  unset DISPLAY
  export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1
  export GIT_TERMINAL_PROMPT=0 GIT_ALLOW_PROTOCOL=https:http:ssh GIT_LFS_SKIP_SMUDGE=1 LC_ALL=C HOME="$own"
  helper= bundle= resolved=
  if [ -n "$authority" ]; then
    bundle=$own/authorities.pem
    for file in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
      [ ! -r "$file" ] || { cat "$file"; break; }
    done >"$bundle"
    decoded "$authority" >>"$bundle"
  fi
  if [ -n "$token" ]; then
    token=$(decoded "$token")
    export CORRAL_GIT_USER="$user" CORRAL_GIT_TOKEN="$token"
    helper='!f() { test "$1" = get && printf "username=%s\npassword=%s\n" "$CORRAL_GIT_USER" "$CORRAL_GIT_TOKEN"; }; f'
  fi
  case $url in
    http://*|https://*) [ -z "$address" ] || resolved=$address; return ;;
  esac
  need ssh
  checked=yes
  if [ -n "$learn" ]; then checked=accept-new; fi
  if [ -n "$hosts" ]; then decoded "$hosts" >"$own/known_hosts"; fi
  GIT_SSH_COMMAND="ssh -F /dev/null -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15 \
    -o StrictHostKeyChecking=$checked -o UserKnownHostsFile=$own/known_hosts -o HashKnownHosts=no -o UpdateHostKeys=no \
    -o IdentityFile=none -o ForwardAgent=no -o ClearAllForwardings=yes -o PermitLocalCommand=no -o ProxyCommand=none \
    -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no -o LogLevel=ERROR $address"
  if [ -n "$key" ]; then
    need ssh-agent
    export SSH_AUTH_SOCK="$own/agent" SSH_ASKPASS_REQUIRE=never
    decoded "$key" | ssh-add -q -t 3600 - 2>"$own/said" ||
      fail "the secret is no private key that can be used without a passphrase"
  else
    GIT_SSH_COMMAND="$GIT_SSH_COMMAND -o PubkeyAuthentication=no"
  fi
  export GIT_SSH_COMMAND GIT_SSH_VARIANT=ssh
}

begin() {
  # A socket has a short path.
  own=$(mktemp -d /tmp/corral-git.XXXXXX 2>/dev/null) || fail "no directory can be made in /tmp"
  case $url in
    http://*|https://*) return ;;
  esac
  if [ -n "$key" ]; then
    need ssh-agent
    agent=$(ssh-agent -s -a "$own/agent" | sed -n 's/^SSH_AGENT_PID=\([0-9]*\).*/\1/p')
    [ -n "$agent" ] || fail "ssh-agent does not start"
  fi
}

resolve() {
  settle
  # Many refs, but no flood of them: neither the memory nor /tmp belongs to one user.
  ulimit -v 1000000 2>/dev/null
  ulimit -f 60000 2>/dev/null
  if [ -n "$ref" ]; then set -- "$ref" "$ref^{}"; else set -- HEAD; fi
  run ls-remote -q -- "$url" "$@" >"$own/refs" || explain
  sed -n 's/^/ref /p' "$own/refs" | head -n 1000
  if [ -n "$learn" ] && [ -s "$own/known_hosts" ]; then sed -n 's/^/host /p' "$own/known_hosts"; fi
}

# Fetches one commit: by its id, and where the host does not allow that, with all branches and tags.
fetch() {
  settle
  rm -rf "$place" && mkdir -p "$place" && cd -- "$place" || fail "the directory $place cannot be made"
  run init -q --template= >/dev/null || explain
  if ! run fetch -q --depth 1 --no-tags -- "$url" "$commit" >/dev/null; then
    case $(cat "$own/said") in
      *"not our ref"*|*"unadvertised object"*|*"does not support"*|*"ouldn't find remote ref"*)
        run fetch -q --no-tags -- "$url" '+refs/heads/*:refs/corral/heads/*' \
          '+refs/tags/*:refs/corral/tags/*' >/dev/null || explain ;;
      *) explain ;;
    esac
  fi
  run cat-file -e "$commit^{commit}" || fail "the commit $commit is not in $url any more"
  run checkout -q --detach "$commit" -- >/dev/null || explain
  printf '%s\n' "$commit" >.git/corral-commit
}

if [ "$mode" = resolve ]; then
  begin
  ( resolve )
  exit $?
fi
place=${CORRAL_JOB_DIR:-$PWD}/source
[ "${CORRAL_RANK:-0}" = 0 ] || place=$place-$CORRAL_RANK
found=
[ -h "$place" ] || found=$(cat "$place/.git/corral-commit" 2>/dev/null)
if [ "$found" != "$commit" ]; then
  begin
  ( fetch ) || exit $?
  clean
  own= agent=
fi
printf 'corral: git: %s at %s%s\n' "$url" "$commit" "${ref:+ ($ref)}"
unset key token user address hosts authority
cd -P -- "$place" || fail "the directory $place cannot be used"
if [ -n "$directory" ]; then
  top=$PWD
  cd -P -- "./$directory" 2>/dev/null || fail "there is no directory $directory in the commit"
  case $PWD/ in
    "$top"/*) ;;
    *) fail "the directory $directory leads out of the repository" ;;
  esac
fi
trap - EXIT TERM INT HUP
export CORRAL_GIT_COMMIT="$commit"
exec "$@"
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class GitAccess:
    """How a repository is reached. `key` and `token` are secret, and one of them at most is given."""

    key: str = ""
    token: str = ""
    #: the name that goes with the token
    user: str = "git"
    #: lines of a file of known hosts of SSH
    known_hosts: str = ""
    #: whether a host that is not known yet is accepted, and written down
    learns_hosts: bool = False
    #: certificates (PEM) of authorities that are trusted beside those of the machine
    authorities: str = ""
    #: at which address the host is, as an option of the client
    pinned: str = ""

    def environment(self) -> dict[str, str]:
        """Values with several lines are encoded: not every engine can pass them on."""
        encoded = {
            "CORRAL_GIT_KEY": self.key,
            "CORRAL_GIT_TOKEN": self.token,
            "CORRAL_GIT_HOSTS": self.known_hosts,
            "CORRAL_GIT_AUTHORITY": self.authorities,
        }
        plain = {
            "CORRAL_GIT_USER": self.user if self.token else "",
            "CORRAL_GIT_PINNED": self.pinned,
            "CORRAL_GIT_LEARN": "1" if self.learns_hosts else "",
        }
        return {
            **{name: b64encode(value.encode()).decode() for name, value in encoded.items() if value},
            **{name: value for name, value in plain.items() if value},
        }


def checkout_command(url: str, ref: str, commit: str, directory: str, command: Sequence[str]) -> tuple[str, ...]:
    """The command of a job that begins in the directory of a commit."""
    return ("/bin/sh", "-c", SCRIPT, "corral-git", "checkout", url, ref, commit, directory, *command)


def resolve_command(url: str, ref: str) -> tuple[str, ...]:
    """Writes a line `ref COMMIT NAME` for each ref that matches, and `host …` for each new known host."""
    return ("/bin/sh", "-c", SCRIPT, "corral-git", "resolve", url, ref, "", "")
