"""Errors on one line, output as text or JSON, and progress are shared by all commands."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp._names import printable, suggestion
from pgmpy_dp.cli.shared.files import require_writable
from pgmpy_dp.cli.shared.wording import in_command_words
from pgmpy_dp.errors import NoiseWarning

if TYPE_CHECKING:
    from pgmpy_dp.privacy.guarantee import Guarantee
    from pgmpy_dp.schema import Schema

Result = tuple[Any, str | Sequence[str]]
"""What a command found: for JSON, and as lines; or records in CSV."""


class Refusing(click.Command):
    """A command that reports errors in one line on stderr with exit code 1, and checks files to write before it begins.

    Warnings of the library are printed on one line each, after the progress bar of its `stages`.
    """

    def __init__(self, *given: Any, stages: int = 0, **more: Any) -> None:
        super().__init__(*given, **more)
        self.stages = stages

    def invoke(self, ctx: click.Context) -> Any:
        # pgmpy logs changes to its models, and sets the level of its log when it is imported.
        logging.getLogger("pgmpy").addFilter(lambda record: record.levelno >= logging.ERROR)
        try:
            require_writable(self.params, ctx.params, force=ctx.params.pop("force", False))
            with warnings.catch_warnings(), _bar(ctx, self.stages):
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", UserWarning)
                warnings.simplefilter("ignore", NoiseWarning)  # commands print it where they end
                warnings.showwarning = lambda warning, *_: note(one_line(warning))  # type: ignore[assignment]
                return super().invoke(ctx)
        except click.UsageError:
            raise
        except click.ClickException as error:
            raise click.ClickException(printable(error.message)) from error
        except (ValueError, OSError, ImportError) as error:
            raise click.ClickException(printable(one_line(error))) from error


class Command(Refusing):
    """A command that returns its result, for JSON and as lines, which are printed."""

    def __init__(self, *given: Any, params: Sequence[click.Parameter] = (), **more: Any) -> None:
        writes = any(getattr(parameter.type, "endings", None) is not None for parameter in params)
        force = click.Option(["--force"], is_flag=True, help="Overwrite existing files.")
        json = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON instead of text.")
        super().__init__(*given, params=[*params, *([force] if writes else []), json], **more)

    def invoke(self, ctx: click.Context) -> Any:
        as_json = ctx.params.pop("as_json")
        emit(as_json, *super().invoke(ctx))


@contextmanager
def _bar(ctx: click.Context, stages: int) -> Iterator[None]:
    """Show a progress bar on stderr if that is a terminal, and notes after it."""
    notes: list[str] = []
    ctx.meta[_NOTES] = notes
    try:
        if stages and sys.stderr.isatty():
            from tqdm import tqdm

            with tqdm(total=stages, bar_format=_FORMAT, leave=False) as ctx.meta[_BAR]:
                yield
        else:
            yield
    finally:
        for text in notes:
            click.echo(printable(marked(text)), err=True)


_FORMAT = "{desc:<44}{bar:20} {n}/{total}  {elapsed}"
_BAR, _NOTES = "pgmpy_dp.bar", "pgmpy_dp.notes"


def stage(name: str) -> None:
    """Show on the command's progress bar which stage begins."""
    bar = click.get_current_context().meta.get(_BAR)
    if bar is not None:
        bar.update(bool(bar.desc))
        bar.set_description(name)


def marked(text: str) -> str:
    """Prefix a note with "Note:" unless it is already marked as a caution."""
    return text if text.startswith("Caution: ") else f"Note: {text}"


def note(text: str) -> None:
    """Print a note on stderr once the progress bar is gone, and only once."""
    notes = click.get_current_context().meta[_NOTES]
    if text not in notes:
        notes.append(text)


def noted() -> list[str]:
    """Take the notes so far, with the library's warnings, to print them elsewhere."""
    notes: list[str] = click.get_current_context().meta[_NOTES]
    taken, notes[:] = [*notes], []
    return taken


def one_line(error: BaseException) -> str:
    """Write the message of an error or a warning on one line, with its advice in terms of the command line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return " ".join(in_command_words(str(error)).split())


def as_json_text(data: Any, **options: Any) -> str:
    """Write JSON without characters that move a terminal's cursor or reverse its direction; it reads back the same."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, **options)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def emit(as_json: bool, data: Any, text: str | Sequence[str]) -> None:
    """Print a result as JSON or as lines, made safe on a terminal; a text is CSV, unchanged if piped to a program."""
    if as_json:
        click.echo(as_json_text(data, indent=None if isinstance(text, str) else 2))
    elif isinstance(text, str) and not sys.stdout.isatty():
        click.echo(text, nl=False, color=True)
    else:
        click.echo("\n".join(map(printable, text.splitlines() if isinstance(text, str) else text)))


def promised(guarantee: Guarantee) -> dict[str, Any]:
    """Describe a guarantee, for JSON."""
    return {"guarantee": guarantee.to_dict() | {"text": str(guarantee)}}


@contextmanager
def charged_already() -> Iterator[None]:
    """Refuse a file that cannot be written, and state that its content is lost although it was paid for."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(
            f"{one_line(error)} The release is lost and stays charged; a new one would cost the same again."
        ) from error


def delta_cautions(delta: float) -> list[str]:
    """Warn of a large delta, which is public."""
    if delta < 1e-3:
        return []
    return [
        f"Caution: with probability delta, {delta:g} here, a mechanism may reveal everything about somebody: choose it "
        "far below one over the number of records."
    ]


def hidden_by_noise(*releases: Any) -> list[str]:
    """Warn if noise hides much of a release, which follows from the release alone."""
    from pgmpy_dp.fitting.plans import outlook

    return [f"Caution: noise hides much of the release: {reason}." for reason in outlook.hidden_by_noise(releases)]


def unidentified_means(model: Any) -> list[str]:
    """Warn of numbers whose mean the release hardly identifies."""
    variables: dict[str, list[str]] = {}
    for name, why in model.unidentified_means().items():
        variables.setdefault(why, []).append(name)
    text = "Caution: the release hardly identifies the mean of {}: {}. More edges there would."
    return [text.format(", ".join(names), why) for why, names in variables.items()]


def assignments(schema: Schema, texts: Sequence[str], option: str) -> dict[str, str]:
    """Read VARIABLE=STATE options and check the variables."""
    from pgmpy_dp.schema.dictionary import assigned

    for text in texts:
        if "=" not in text:
            raise click.UsageError(f"{option} {text}: write VARIABLE=STATE.")
    return assigned(texts, schema, option)


class Group(click.Group):
    """A group that lists its commands in the order of their use, and suggests one for a misspelt name."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(f"{error.message}{suggestion(args[0], self.commands)}", ctx) from None
