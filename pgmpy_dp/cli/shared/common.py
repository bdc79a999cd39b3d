"""The commands share errors on one line, output as text or JSON, and progress."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp._names import suggestion
from pgmpy_dp.errors import in_shell_words

if TYPE_CHECKING:
    from pgmpy_dp.schema import Schema

BAR = "{desc:<44}{bar:20} {n}/{total}  {elapsed}"


class Command(click.Command):
    """A command refuses with one line on stderr and exit code 1, and what it cannot write before it begins."""

    def invoke(self, ctx: click.Context) -> Any:
        from pgmpy_dp.cli.shared.files import require_writable

        try:
            require_writable(self.params, ctx.params, force=ctx.params.pop("force", False))
            with warnings.catch_warnings():
                # On import pgmpy warns of its own deprecated modules; nobody at the command line can help that.
                warnings.filterwarnings("ignore", category=FutureWarning, module=r"pgmpy\.")
                warnings.showwarning = _note  # type: ignore[assignment]
                return super().invoke(ctx)
        except click.UsageError:
            raise
        except click.ClickException as error:
            raise click.ClickException(shown(error.message)) from error
        except (ValueError, OSError, ImportError) as error:
            raise click.ClickException(shown(one_line(error))) from error


def _note(message: Warning, *_: Any) -> None:
    """Print a warning of the library on one line."""
    click.echo(shown(f"Note: {one_line(message)}"), err=True)


def shown(line: str) -> str:
    """Make a line safe for a terminal: names come from files of others, and may hold what moves the cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def one_line(error: BaseException) -> str:
    """Put the message of an error or a warning on one line, with its advice for the command line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return " ".join(in_shell_words(error).split())


def as_json_text(data: Any, **options: Any) -> str:
    """Write JSON of which no character moves a terminal's cursor or turns its direction: it reads back as the same."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, **options)
    return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    """Write a character as JSON does, of which one beyond 16 bits is a pair."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def emit(as_json: bool, data: Any, text: str | Sequence[str]) -> None:
    """Print a result, as JSON or as text; lines that hold names of others are handed over one by one."""
    if as_json:
        click.echo(as_json_text(data, indent=2))
    else:
        lines = text.splitlines() if isinstance(text, str) else text
        click.echo("\n".join(map(shown, lines)))


def emit_records(text: str) -> None:
    """Print CSV: on a terminal made safe for it, and to a file or another program as it is."""
    seen = sys.stdout.isatty()
    click.echo("".join(f"{shown(line)}\n" for line in text.splitlines()) if seen else text, nl=False, color=True)


@contextmanager
def charged_already() -> Iterator[None]:
    """Say, where what was paid for cannot be written, that it is lost.

    Raises
    ------
    click.ClickException
    """
    try:
        yield
    except OSError as error:
        raise click.ClickException(
            f"{one_line(error)} What was measured is lost, and stays charged: it would cost as much again."
        ) from error


@contextmanager
def stages(total: int) -> Iterator[Callable[[str], None]]:
    """Show a bar on stderr, if that is a terminal; call what it yields at the start of each stage."""
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
    import pgmpy  # noqa: F401  # pgmpy sets the level on import

    logging.getLogger("pgmpy").setLevel(logging.ERROR)


def delta_cautions(delta: float) -> list[str]:
    """Warn of a delta, which is public, that promises little to each of a thousand persons."""
    if delta < 1e-3:
        return []
    return [
        f"Caution: with a probability of delta, {delta:g} here, a mechanism may tell everything of somebody: choose it "
        "far below one over the number of records."
    ]


def assignments(schema: Schema, texts: Sequence[str], option: str) -> dict[str, str]:
    """Read VARIABLE=STATE options and check the variables; a name may itself hold an equals sign."""
    given: dict[str, str] = {}
    for text in texts:
        splits = [(text[:i], text[i + 1 :]) for i, character in enumerate(text) if character == "="]
        if not splits:
            raise click.UsageError(f"{option} {text}: write VARIABLE=STATE.")
        variable, state = next((split for split in splits if split[0] in schema.states), splits[0])
        schema.require([(variable,)])
        if variable in given:
            raise click.ClickException(f"{option} names {variable!r} twice: give it once.")
        given[variable] = state
    return given


class Group(click.Group):
    """A group lists its commands in the order of their use, and suggests one where a name is misspelt."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(f"{error.message}{suggestion(args[0], self.commands)}", ctx) from None
