"""Records of users: profiles, permissions, quotas, sign-in, and secrets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from corral.core.model import JobKind
from corral.core.people.budgets import Account
from corral.core.people.quota import Quota
from corral.core.storage.volumes import VolumeType


class Role(StrEnum):
    OPERATOR = "operator"
    SCIENTIST = "scientist"


#: The group and the permission group that every installation has.
DEFAULT_GROUP = "default"

EVERYONE = "everyone"

#: The value for users with a password in the store; other users come from a sign-in provider.
LOCAL_PROVIDER = "local"


class Function(StrEnum):
    """The functions that a permission group can allow. Operators may use all."""

    TRAIN = "train"
    DISTRIBUTE = "distribute"
    WORKBENCH = "workbench"
    TASKS = "tasks"
    VOLUMES = "volumes"
    DATASETS = "datasets"
    IMAGES = "images"
    SEE_OTHERS_JOBS = "see-others-jobs"
    TOKENS = "tokens"


#: What `everyone` may do on a fresh install.
USUAL_FUNCTIONS = frozenset(Function) - {Function.SEE_OTHERS_JOBS}


class Scope(StrEnum):
    """Reach of a token, within the rights of its user."""

    #: look, change nothing
    READ = "read"
    #: look, and submit, start, stop and order jobs
    JOBS = "jobs"
    #: everything that the user may do
    FULL = "full"


@dataclass(frozen=True, kw_only=True, slots=True)
class UserRecord:
    name: str
    role: Role = Role.SCIENTIST
    #: None means: cannot sign in with a password
    password_hash: str | None = None
    #: the first password is for one use: it must be replaced at the first sign-in in a browser
    must_change_password: bool = False
    disabled: bool = False
    created_at: float = 0.0
    #: None means: in no group, and so without a pool
    group: str | None = DEFAULT_GROUP
    permission_group: str = EVERYONE
    display_name: str = ""
    email: str = ""
    #: the provider that signs this user in, and the user's unchanging id there; "" for local users
    provider: str = LOCAL_PROVIDER
    subject: str = ""
    #: when the user last signed in, or used a session or a token; None means never
    last_seen_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupRecord:
    """Users who share one pool. Who is in it is kept with the users."""

    name: str
    pool: str | None = None
    description: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PermissionGroupRecord:
    name: str
    functions: tuple[Function, ...] = ()
    description: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SshKeyRecord:
    id: str
    user: str
    name: str
    #: one line in OpenSSH's format, without a comment
    public_key: str
    #: SHA256:…
    fingerprint: str
    created_at: float = 0.0


class ProviderKind(StrEnum):
    GITHUB = "github"
    GITLAB = "gitlab"
    OIDC = "oidc"
    #: a directory, such as OpenLDAP or Active Directory: corral asks it about names and passwords
    LDAP = "ldap"


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectoryRecord:
    """Where and how a directory is searched for people and their groups."""

    #: where people are searched
    base: str = ""
    #: which entries are people who may be found
    user_filter: str = "(objectClass=person)"
    login_attribute: str = "uid"
    #: an unchanging id of an entry
    id_attribute: str = "entryUUID"
    name_attribute: str = "cn"
    email_attribute: str = "mail"
    #: the name with {} in the place of the login to bind with as the person; "" means: the service account searches
    bind_as: str = ""
    #: where groups are searched; "" means: only the groups that the entry of a person names
    group_base: str = ""
    group_filter: str = "(objectClass=groupOfNames)"
    #: the attribute of a group with its members
    member_attribute: str = "member"
    #: whether members of a group's groups are its members
    nested: bool = False
    #: addresses of copies of the directory, which are asked if the first one does not answer
    more_addresses: tuple[str, ...] = ()
    #: whether a connection to ldap:// is encrypted by StartTLS
    starttls: bool = True
    #: passwords may be sent unencrypted to another machine
    allow_plain: bool = False
    #: the certificates (PEM) that alone are trusted; "" means: those that the machine trusts
    ca_certificate: str = ""
    #: how often the people of the directory are looked up again
    refresh_minutes: int = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderRecord:
    """A service that signs users in, configured by an operator."""

    id: str
    kind: ProviderKind
    #: what the button says
    title: str = ""
    #: the address of the provider
    issuer: str = ""
    client_id: str = ""
    #: encrypted; never shown
    client_secret: str = ""
    enabled: bool = False
    #: logins or e-mail addresses that may come in without being on-boarded by hand; "*" allows all
    allow: tuple[str, ...] = ()
    #: where people who come in by the allow-list are put; None means: in no group
    group: str | None = DEFAULT_GROUP
    #: the claim with the groups that the provider knows a person to be in; dots lead into objects
    groups_claim: str = "groups"
    #: GROUP-OF-THE-PROVIDER=GROUP or =@operator, decided anew at each sign-in
    group_rules: tuple[str, ...] = ()
    #: the GitHub organisation or GitLab group whose members can be listed
    organisation: str = ""
    #: for listing them; encrypted, never shown
    api_token: str = ""
    #: settings of a directory; its address is `issuer`, its service account `client_id` and `client_secret`
    directory: DirectoryRecord | None = None
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class IdentityRecord:
    """A person whom a provider knows, on-boarded or not."""

    provider: str
    subject: str
    login: str
    name: str = ""
    email: str = ""
    seen_at: float = 0.0
    #: the corral user, once on-boarded
    user: str | None = None
    #: when its directory no longer had the person, so that the user was disabled; 0 means never, or back again
    gone_at: float = 0.0


class CredentialKind(StrEnum):
    TOKEN = "token"
    SESSION = "session"


@dataclass(frozen=True, kw_only=True, slots=True)
class CredentialRecord:
    """A bearer token or a browser session. Only a hash of the secret is kept."""

    id: str
    kind: CredentialKind
    user: str
    name: str = ""
    secret_hash: str
    #: how far a token reaches; sessions reach everywhere
    scopes: tuple[Scope, ...] = (Scope.FULL,)
    #: the value that a browser must send back in a header; only sessions have one
    csrf: str = ""
    created_at: float = 0.0
    expires_at: float | None = None
    last_used_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaRecord:
    user: str
    kind: JobKind
    quota: Quota


@dataclass(frozen=True, kw_only=True, slots=True)
class VolumeQuotaRecord:
    """The most bytes that one user's volumes of one type may have; None means no limit."""

    user: str
    type: VolumeType
    max_bytes: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SecretRecord:
    """A value that jobs get and no answer shows."""

    owner: Account
    name: str
    #: encrypted; never shown
    value: str
    #: the user who stored the present value, and the time
    set_by: str = ""
    set_at: float = 0.0


class PersonalChannelKind(StrEnum):
    MAIL = "mail"
    #: a URL that gets JSON
    WEBHOOK = "webhook"
    #: also Mattermost and Rocket.Chat
    SLACK = "slack"
    DISCORD = "discord"
    TEAMS = "teams"


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonalChannelRecord:
    """Where items of one user's inbox are sent."""

    user: str
    name: str
    kind: PersonalChannelKind
    #: a mail address or a URL, encrypted; never shown
    address: str
    #: the address without its secrets
    shown: str
    #: the kinds of items that are sent; empty: all that the inbox shows
    kinds: tuple[str, ...] = ()
    enabled: bool = True
    created_at: float = 0.0
    #: a digest of the code that was mailed; empty: the address is confirmed
    code_digest: str = ""
    #: when the code stops being valid
    code_until: float = 0.0
    wrong_codes: int = 0
    #: the id of the last event that was sent or given up
    sent_until: int = 0
    #: tries of the message that is sent now, and when it may be tried next
    tries: int = 0
    next_try_at: float = 0.0
    sent_at: float | None = None
    #: error of the last try; empty if it succeeded
    error: str = ""

    @property
    def is_confirmed(self) -> bool:
        return not self.code_digest
