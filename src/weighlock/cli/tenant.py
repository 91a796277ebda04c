"""A tenant, as options name one."""

from __future__ import annotations

import click


def demand_tenant(_: click.Context, __: click.Parameter, said: str | None) -> str | None:
    """Refuses the empty name: a variable of a script that is not set would be a tenant of its own."""
    if said is not None and not said.strip():
        raise click.BadParameter("it is empty")
    return said
