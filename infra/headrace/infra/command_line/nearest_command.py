"""Groups of commands that name the nearest one when asked for one that is not there; Ctrl-C is status 130."""

import sys

import click

from headrace.infra.configuration.tree import nearest

INTERRUPTED = 130
"""Exit status of a program that SIGINT ended, as shells count it."""


class NearestGroup(click.Group):
    """`headrace slove` -> `no such command 'slove'; the nearest is solve`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or fail with the nearest name."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"no such command {args[0]!r}; {nearest(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the sub-command; Ctrl-C where nobody waits for it ends it in silence, with the shell's status for it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
