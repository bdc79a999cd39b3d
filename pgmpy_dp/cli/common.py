"""What the commands share: errors as one line, output as text or JSON, progress."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

BAR = "{desc:<44}{bar:20} {n}/{total}  {elapsed}"


class Command(click.Command):
    """A command whose refusals are one line on stderr and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        # pgmpy warns of its own deprecated modules as it imports them; nobody at the command line can help that.
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"pgmpy\.")
        try:
            return super().invoke(ctx)
        except (ValueError, OSError, ImportError) as error:
            raise click.ClickException(one_line(error)) from error


def one_line(error: BaseException) -> str:
    """The message of an error, on one line; for files that cannot be opened, what and which."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return " ".join(str(error).split())


def file_argument(name: str) -> Callable[[Any], Any]:
    """A file that exists."""
    return click.argument(name, type=click.Path(exists=True, dir_okay=False, path_type=Path))


def file_option(*names: str, help: str, exists: bool = True, required: bool = False) -> Callable[[Any], Any]:
    """A file to read, or with ``exists=False`` one to write."""
    kind = click.Path(exists=exists, dir_okay=False, path_type=Path)
    return click.option(*names, type=kind, required=required, help=help)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def emit(as_json: bool, data: Any, text: str) -> None:
    """Print a result, as JSON or as text."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) if as_json else text)


@contextmanager
def stages(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on stderr, where that is a terminal; call what it yields at the start of each stage."""
    from tqdm import tqdm

    with tqdm(total=total, bar_format=BAR, disable=None, leave=False) as bar:
        begun = False

        def begin(stage: str) -> None:
            nonlocal begun
            if begun:
                bar.update()
            begun = True
            bar.set_description(stage)

        yield begin
        bar.update()


def quiet() -> None:
    """Keep pgmpy's log of what it does to its own models off the screen."""
    import pgmpy  # noqa: F401  # sets its level on import

    logging.getLogger("pgmpy").setLevel(logging.ERROR)
