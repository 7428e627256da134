"""A group whose members are the modules of a package: adding a file adds a sub-command, imported only when called.

A module's name is its command's, `_` for `-`; one named like a word of Python ends in `_`: `import_.py` is `import`.
"""

import importlib
import keyword
import pkgutil
from types import ModuleType
from typing import ClassVar

import click

from headrace.infra.command_line.nearest_command import NearestGroup


class CommandFolder(NearestGroup):
    """Finds its sub-commands by file name; a subclass says in which package."""

    package: ClassVar[ModuleType]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Give the sub-commands' names, sorted."""
        modules = pkgutil.iter_modules(self.package.__path__)
        return sorted(module.name.rstrip("_").replace("_", "-") for module in modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of that name and give its `command`."""
        if cmd_name not in self.list_commands(ctx):
            return None
        name = cmd_name.replace("-", "_") + ("_" if keyword.iskeyword(cmd_name) else "")
        module = importlib.import_module(f"{self.package.__name__}.{name}")
        command: click.Command = module.command
        return command
