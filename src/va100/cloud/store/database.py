"""Units of work: read and change records in one transaction.

A :class:`Work` is a transaction with a handful of verbs.  ``change`` tells how many rows it
changed, which is what compare-and-set is made of; nothing else here knows of concurrency.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    Connection,
    Engine,
    Select,
    create_engine,
    delete,
    event,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError
from sqlalchemy.pool import NullPool

from va100.cloud.store.tables import TABLES
from va100.errors import Conflict, SetupError

T = TypeVar("T")

MIGRATIONS: Final = Path(__file__).with_name("migrations")
_TESTS: Final = {
    "lt": lambda column, value: column < value,
    "le": lambda column, value: column <= value,
    "gt": lambda column, value: column > value,
    "ge": lambda column, value: column >= value,
    "in": lambda column, value: column.in_(value),
    "not": lambda column, value: column.is_not(None) if value is None else column != value,
}
"""Endings of a condition's name, after two underscores."""


class Work:
    """One transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, record: type[T], **conditions: Any) -> T | None:
        """The one record that meets all conditions; none if there is none."""
        found = self.all(record, limit=1, **conditions)
        return found[0] if found else None

    def all(
        self,
        record: type[T],
        *,
        order: Sequence[str] = (),
        limit: int | None = None,
        **conditions: Any,
    ) -> list[T]:
        """Records that meet all conditions.

        Parameters
        ----------
        order : sequence of str
            Columns; with a dash before it, the largest first.
        conditions
            ``column=value``, or ``column__lt=value`` and the like.
        """
        table = TABLES[record]
        query: Select[Any] = select(table)
        for condition in self._where(record, conditions):
            query = query.where(condition)
        for name in order:
            column = table.c[name.removeprefix("-")]
            query = query.order_by(column.desc() if name.startswith("-") else column)
        if limit is not None:
            query = query.limit(limit)
        return [record(**row._mapping) for row in self._connection.execute(query)]

    def count(self, record: type, **conditions: Any) -> int:
        """How many records meet all conditions."""
        query = select(func.count()).select_from(TABLES[record])
        for condition in self._where(record, conditions):
            query = query.where(condition)
        return int(self._connection.execute(query).scalar_one())

    def total(self, record: type, column: str, **conditions: Any) -> int:
        """Sum of a column of the records that meet all conditions."""
        query = select(func.coalesce(func.sum(TABLES[record].c[column]), 0))
        for condition in self._where(record, conditions):
            query = query.where(condition)
        return int(self._connection.execute(query).scalar_one())

    def highest(self, record: type, column: str) -> int:
        """Largest value of a column; 0 without records."""
        query = select(func.coalesce(func.max(TABLES[record].c[column]), 0))
        return int(self._connection.execute(query).scalar_one())

    def add(self, *added: Any) -> None:
        """Add records.

        Raises
        ------
        Conflict
            Something unique is there already.
        """
        try:
            for record in added:
                values = {name: getattr(record, name) for name in TABLES[type(record)].c.keys()}  # noqa: SIM118
                self._connection.execute(insert(TABLES[type(record)]).values(**values))
        except IntegrityError as error:
            kind = type(added[0]).__name__.removesuffix("Record").lower()
            raise Conflict(f"a {kind} like this is there already") from error

    def change(self, record: type, values: Mapping[str, Any], **conditions: Any) -> int:
        """Change records that meet all conditions; how many did."""
        query = update(TABLES[record]).values(**values)
        for condition in self._where(record, conditions):
            query = query.where(condition)
        return int(self._connection.execute(query).rowcount)

    def remove(self, record: type, **conditions: Any) -> int:
        """Remove records that meet all conditions; how many did."""
        query = delete(TABLES[record])
        for condition in self._where(record, conditions):
            query = query.where(condition)
        return int(self._connection.execute(query).rowcount)

    def serialise(self, name: str) -> None:
        """Wait until nobody else is in a transaction with this name, and keep others out.

        SQLite lets one transaction write at a time anyway.
        """
        if self._connection.dialect.name == "postgresql":
            lock = text("select pg_advisory_xact_lock(hashtext(:name))")
            self._connection.execute(lock, {"name": name})

    def _where(self, record: type, conditions: Mapping[str, Any]) -> Iterator[Any]:
        table = TABLES[record]
        for name, value in conditions.items():
            column_name, _, test = name.partition("__")
            column = table.c[column_name]
            if test:
                yield _TESTS[test](column, value)
            else:
                yield column.is_(None) if value is None else column == value


class Database:
    """A database by its URL, made and migrated when it is opened.

    Raises
    ------
    SetupError
        The URL means nothing, or nobody answers there.
    """

    def __init__(self, url: str) -> None:
        try:
            self.engine: Engine = _engine(url)
            with self.engine.connect() as connection:
                connection.execute(text("select 1"))
        except (ArgumentError, OperationalError, ImportError) as error:
            raise SetupError(
                f"database {_without_password(url)}: {str(error).splitlines()[0]}",
                remedy="give sqlite:///FILE, or postgresql+psycopg://USER@HOST/NAME of a server "
                "that runs",
            ) from error
        self.url = url

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of this machine."""
        return self.engine.dialect.name == "sqlite"

    def migrate(self) -> None:
        """Bring the tables up to date; nothing to do when they are."""
        current, newest = self.revision()
        if current == newest:
            return
        with self.engine.begin() as connection:
            if not self.is_sqlite:  # several workers may start at once
                connection.execute(text("select pg_advisory_xact_lock(5100)"))
            command.upgrade(_configuration(connection), "head")

    def revision(self) -> tuple[str | None, str | None]:
        """The revision of the tables, and that of this program."""
        with self.engine.connect() as connection:
            current = MigrationContext.configure(connection).get_current_revision()
        return current, ScriptDirectory(str(MIGRATIONS)).get_current_head()

    @contextmanager
    def work(self) -> Iterator[Work]:
        """One transaction, committed at the end unless an exception goes through it."""
        with self.engine.begin() as connection:
            yield Work(connection)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def plain(record: Any) -> dict[str, Any]:
    """A record as a dictionary."""
    return asdict(record)


def _configuration(connection: Connection) -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", str(MIGRATIONS))
    configuration.attributes["connection"] = connection
    return configuration


def _engine(url: str) -> Engine:
    if not url.startswith("sqlite"):
        return create_engine(url, pool_pre_ping=True, pool_size=5, max_overflow=15)
    memory = url in ("sqlite://", "sqlite:///:memory:")
    if not memory:
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    more: dict[str, Any] = {} if memory else {"poolclass": NullPool}
    engine = create_engine(url, connect_args={"timeout": 30, "check_same_thread": False}, **more)

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions are begun below
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=normal")
        connection.execute("pragma busy_timeout=30000")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("begin immediate")

    return engine


def _without_password(url: str) -> str:
    head, at, tail = url.rpartition("@")
    return f"{head.partition('://')[0]}://...@{tail}" if at else url
