"""What requests and answers look like: the words of the API, documented for OpenAPI."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")]
Seconds = Annotated[int, Field(ge=0, le=2**40)]
Word = Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]*$")]


class Body(BaseModel):
    """What a request says; unknown words are refused."""

    model_config = ConfigDict(extra="forbid")


class Registration(Body):
    """Who registers."""

    email: Text
    password: Annotated[str, Field(max_length=256)]
    name: Text = ""
    tenant: Annotated[str, Field(max_length=40)] = ""


class SignIn(Body):
    """Who signs in."""

    email: Text
    password: Annotated[str, Field(max_length=256)]
    code: Annotated[str, Field(max_length=10)] = ""


class PersonView(BaseModel):
    """Whoever asks."""

    id: str
    email: str
    name: str
    operator: bool
    second_factor: bool
    tenant: str
    scopes: list[str]


class SessionView(BaseModel):
    """A session; its cookie is in the header, and this goes into ``X-CSRF-Token``."""

    csrf_token: str
    expires_s: int


class PasswordChange(Body):
    """A new password."""

    old: Annotated[str, Field(max_length=256)]
    new: Annotated[str, Field(max_length=256)]


class Password(Body):
    """A password, asked again."""

    password: Annotated[str, Field(max_length=256)]


class Code(Body):
    """A code of the second factor."""

    code: Annotated[str, Field(max_length=10)]


class SecretView(BaseModel):
    """A new second factor's secret, not in force yet."""

    secret: str
    address: str


class KeyWish(Body):
    """A key to make."""

    name: Text
    scopes: Annotated[list[str], Field(max_length=20)] | None = None
    lasts_s: Annotated[int, Field(ge=1, le=2**33)] | None = None


class KeyView(BaseModel):
    """A key; its secret is told once, when it is made."""

    id: str
    name: str
    scopes: list[str]
    created_s: int
    expires_s: int | None
    used_s: int | None
    secret: str | None = None


class MemberWish(Body):
    """A member to add, or a role to change."""

    email: Text
    role: Text


class MemberView(BaseModel):
    """A member of a tenant."""

    person: str
    email: str
    name: str
    role: str
    since_s: int


class ProductView(BaseModel):
    """Something to rent."""

    gpu: str
    title: str
    model: str
    profile: str
    cards: int
    eighths: int
    memory_bytes: int
    sm_count: int
    per_h_micro: int
    spot_per_h_micro: int


class TemplateView(BaseModel):
    """What an instance can start with."""

    name: str
    title: str
    summary: str
    image: str
    disk_gib: int
    ports: list[int]


class Launch(Body):
    """An instance, or a gang, to launch."""

    gpu: Annotated[str, Field(max_length=80, examples=["a100-80g:1g.10gb", "a100-80g:2"])]
    template: Text = "cuda"
    name: Annotated[str, Field(max_length=48)] = ""
    market: Text = "on-demand"
    count: Annotated[int, Field(ge=1, le=8)] = 1
    nvlink: bool = False
    disk_gib: Annotated[int, Field(ge=1, le=4096)] | None = None
    environment: dict[str, Word] = {}
    ports: Annotated[list[Annotated[int, Field(ge=1, le=65535)]], Field(max_length=8)] = []
    ssh_key: Annotated[str, Field(max_length=5000)] = ""
    command: Annotated[list[Word], Field(max_length=256)] = []
    lease_s: Annotated[int, Field(ge=60, le=2_592_000)] | None = None
    idle_stop_s: Annotated[int, Field(ge=0, le=2_592_000)] | None = None
    lendable: bool = False
    recover: bool = True


class InstanceView(BaseModel):
    """An instance."""

    id: str
    name: str
    state: str
    reason: str
    reason_code: str
    template: str
    gpu: str
    model: str
    profile: str
    cards: int
    eighths: int
    market: str
    tier: str
    node: str
    gpus: list[int]
    start: int
    disk_gib: int
    environment: dict[str, str]
    ports: list[int]
    command: list[str]
    gang: str
    created_s: int
    started_s: int | None
    stopped_s: int | None
    ends_s: int | None
    notice_s: int | None
    idle_stop_s: int | None
    lent: bool
    exit_code: int | None
    generation: int
    per_h_micro: int


class InstancePage(BaseModel):
    """Some instances, and where to go on."""

    items: list[InstanceView]
    next: str | None


class Renewal(Body):
    """How long a lease is to last from now."""

    lease_s: Annotated[int, Field(ge=60, le=2_592_000)] | None = None


class Resize(Body):
    """Another shape."""

    gpu: Annotated[str, Field(max_length=80)]


class Command(Body):
    """A command to run inside."""

    command: Annotated[list[Word], Field(min_length=1, max_length=256)]
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 60


class FinishedView(BaseModel):
    """What a command came to; bytes that are no UTF-8 are replaced."""

    exit_code: int
    output: str
    errors: str


class LogView(BaseModel):
    """A piece of what was printed, and where to go on."""

    text: str
    next: int


class EventView(BaseModel):
    """Something that happened to an instance."""

    at_s: int
    kind: str
    text: str


class SampleView(BaseModel):
    """An instance's figures at a moment."""

    at_s: int
    busy_ratio: float
    memory_bytes: int
    cpu_s: float


class TerminalWish(Body):
    """A terminal's size."""

    columns: Annotated[int, Field(ge=10, le=500)] = 80
    rows: Annotated[int, Field(ge=2, le=200)] = 24


class TerminalView(BaseModel):
    """A terminal."""

    terminal: str


class TerminalPiece(BaseModel):
    """What a terminal showed, in base 64, and where to go on."""

    data: str
    next: int
    ended: bool


class Keys(Body):
    """What is typed, in base 64."""

    data: Annotated[str, Field(max_length=65_536)]


class QuotaView(BaseModel):
    """What a tenant has of what it may have."""

    eighths_used: int
    eighths_limit: int
    instances_used: int
    instances_limit: int
    disk_gib_used: int
    disk_gib_limit: int


class BalanceView(BaseModel):
    """What a tenant has left."""

    balance_micro: int


class TopUp(Body):
    """A payment."""

    amount_micro: Annotated[int, Field(ge=1, le=10_000_000_000)]
    reference: Text = ""


class EntryView(BaseModel):
    """A line of the ledger."""

    number: int
    kind: str
    amount_micro: int
    at_s: int
    instance: str
    item: str
    eighths: int
    from_s: int
    to_s: int
    text: str


class EntryPage(BaseModel):
    """Some lines, and where to go on."""

    items: list[EntryView]
    next: int | None


class LineView(BaseModel):
    """A line of an invoice."""

    instance: str
    kind: str
    item: str
    eighths: int
    seconds_s: int
    amount_micro: int


class InvoiceView(BaseModel):
    """A time's charges and payments."""

    from_s: int
    to_s: int
    opening_micro: int
    charged_micro: int
    paid_micro: int
    closing_micro: int
    lines: list[LineView]


class UsageView(BaseModel):
    """What an instance had, and how long its GPU was at work."""

    instance: str
    name: str
    item: str
    eighths: int
    allocated_s: int
    busy_s: float
    charged_micro: int
    discount_micro: int


class NodeWish(Body):
    """A machine to add."""

    name: Annotated[str, Field(max_length=60, pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    model: Text
    gpu_count: Annotated[int, Field(ge=1, le=16)]
    islands: Annotated[list[list[int]], Field(max_length=16)] = []
    driver: Text = "local"


class NodeState(Body):
    """Whether a machine takes instances."""

    state: Text


class TenantChange(Body):
    """Limits to change; what is not given stays."""

    limit_eighths: Annotated[int, Field(ge=0, le=2**20)] | None = None
    most_instances: Annotated[int, Field(ge=0, le=2**20)] | None = None
    most_disk_gib: Annotated[int, Field(ge=0, le=2**20)] | None = None
    weight: Annotated[int, Field(ge=1, le=1000)] | None = None
    credit_limit_micro: Annotated[int, Field(ge=0, le=10**15)] | None = None
    trusted: bool | None = None
    suspended: bool | None = None


class Promise(Body):
    """How many instances of a shape a tenant is promised."""

    tenant: Text
    gpu: Annotated[str, Field(max_length=80)]
    count: Annotated[int, Field(ge=0, le=10_000)]


class Room(Body):
    """A shape that room is to be made for."""

    gpu: Text


class PriceWish(Body):
    """A price and the date it holds from."""

    item: Text
    micro_per_h: Annotated[int, Field(ge=0, le=10**12)]
    from_s: Seconds | None = None


class Payment(Body):
    """A payment that an operator enters."""

    tenant: Text
    kind: Text = "top-up"
    amount_micro: Annotated[int, Field(ge=-(10**13), le=10**13)]
    reference: Text = ""


class ProblemView(BaseModel):
    """A problem (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
