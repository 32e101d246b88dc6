"""The store's tables. Texts of any size and content are artifacts: compressed, kept once, named by their SHA-256."""

import re
from typing import Any

from sqlalchemy import JSON, BigInteger, Dialect, Float, ForeignKey, Index, Integer, LargeBinary, String, Text, TypeDecorator
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

VERSION = 1
"""Of this layout. A store of another one is refused rather than half understood."""


class PlainText(TypeDecorator[str]):
    """Text a database can hold: PostgreSQL takes no NUL, UTF-8 no half surrogate pair, and models write both."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else re.sub("[\0\ud800-\udfff]", "\ufffd", value)


class Base(DeclarativeBase):
    type_annotation_map = {str: PlainText(), float: Float(53), int: BigInteger(), dict[str, Any]: JSON(), list[Any]: JSON()}  # noqa: RUF012


class Meta(Base):
    __tablename__ = "meta"
    version: Mapped[int] = mapped_column(primary_key=True)


class Run(Base):
    __tablename__ = "runs"
    run_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    state: Mapped[str]
    model: Mapped[str]
    settings: Mapped[dict[str, Any]]
    note: Mapped[str]
    created_at: Mapped[float]
    """Seconds since the epoch, as everywhere in the store."""
    finished_at: Mapped[float | None]


class Scenario(Base):
    __tablename__ = "scenarios"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    env_id: Mapped[str] = mapped_column(String(63), primary_key=True)
    position: Mapped[int]
    """Order of acceptance, which content may depend on and concurrency must not."""
    record: Mapped[dict[str, Any]]
    state: Mapped[str]
    note: Mapped[str]


class Ending(Base):
    """How a scenario ended, as whoever ran it says it. Newer than stores of this layout may be."""

    __tablename__ = "endings"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    env_id: Mapped[str] = mapped_column(String(63), primary_key=True)
    row: Mapped[dict[str, Any]]


class Attempt(Base):
    __tablename__ = "attempts"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    env_id: Mapped[str] = mapped_column(String(63), primary_key=True)
    stage: Mapped[str] = mapped_column(String(32), primary_key=True)
    item: Mapped[str] = mapped_column(String(64), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    prompt: Mapped[str] = mapped_column(String(64))
    """Digests of artifacts, these three."""
    answer: Mapped[str | None] = mapped_column(String(64))
    artifact: Mapped[str | None] = mapped_column(String(64))
    problems: Mapped[list[Any]]
    weight: Mapped[float]
    chosen: Mapped[bool]
    cpu_seconds: Mapped[float]
    seconds: Mapped[float]


class Artifact(Base):
    __tablename__ = "artifacts"
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    packed: Mapped[bytes] = mapped_column(LargeBinary)


class Reply(Base):
    """What a model answered to a content: the cache by which a killed run pays for nothing twice."""

    __tablename__ = "replies"
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    packed: Mapped[bytes] = mapped_column(LargeBinary)


class Call(Base):
    __tablename__ = "calls"
    __table_args__ = (Index("calls_by_run", "run_id", "env_id", "stage"),)
    call_id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer(), "sqlite"), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"))
    env_id: Mapped[str] = mapped_column(String(63))
    stage: Mapped[str] = mapped_column(String(32))
    item: Mapped[str] = mapped_column(String(64))
    attempt: Mapped[int] = mapped_column(Integer)
    key: Mapped[str] = mapped_column(String(64))
    model: Mapped[str]
    outcome: Mapped[str] = mapped_column(String(32))
    """Outcome of the reply, or the name of the error where none came."""
    failed: Mapped[bool]
    """No answer came."""
    hit: Mapped[bool]
    """Answered from the store; all figures below are 0 then."""
    requests: Mapped[int] = mapped_column(Integer)
    unmetered: Mapped[int] = mapped_column(Integer)
    prompt_tokens: Mapped[int]
    completion_tokens: Mapped[int]
    cached_tokens: Mapped[int]
    usd: Mapped[float | None]
    """None where the model's price is unknown."""
    seconds: Mapped[float]
    created_at: Mapped[float]
