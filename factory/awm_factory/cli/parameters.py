"""Values on the command line that click has no type for."""

from datetime import UTC, datetime

import click


def world_time(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """An instant with a time zone, as the contract writes it: UTC, whole seconds, `Z`."""
    if value is None:
        return None
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise click.BadParameter(
            f"{value!r} is no instant with a time zone; write it like 2026-01-01T00:00:00Z", context, parameter
        )
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
