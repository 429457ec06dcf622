"""Help in two lengths, and what the help of every command and option must contain."""

import re

import click
import pytest

from likewise.cli import group
from likewise.cli.options.commands import COMMON, GROUPS, LongCommand
from tests.command import likewise_command

# Number of lines that fit a terminal without scrolling.
MOST_LINES = 48


def commands(of=group, path=()):
    """Yield every command that is not a group, with its path."""
    context = click.Context(of)
    for name in of.list_commands(context):
        command = of.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(commands())
LONG = {words: command for words, command in ALL.items() if isinstance(command, LongCommand)}


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_short_help_fits_a_screen_and_long_help_lists_every_option(words):
    short, long = likewise_command(*words, "-h").out.decode(), likewise_command(*words, "--help").out.decode()
    assert len(short.splitlines()) <= MOST_LINES
    options = [param for param in ALL[words].params if isinstance(param, click.Option)]
    for option in options:
        assert option.help, option.name
        assert option.opts[-1] in long or option.opts[0] in long
    assert len(re.findall("^ {4}likewise ", long, re.M)) <= 5
    if words in LONG:
        assert f"All {len(options) + 1} options" in short


def test_every_option_of_a_long_command_is_in_one_group():
    names = [name for group_names in GROUPS.values() for name in group_names]
    assert len(names) == len(set(names))
    used = {param.name for command in LONG.values() for param in command.params}
    assert used >= set(names) | COMMON


def test_a_command_with_many_options_has_two_helps():
    for words, command in ALL.items():
        num_options = sum(isinstance(param, click.Option) for param in command.params)
        assert isinstance(command, LongCommand) or num_options < 20, words


@pytest.mark.parametrize(
    ("arguments", "incomplete", "expected"),
    [
        ([], "ded", {("plain", "dedup")}),
        (["dedup"], "--thr", {("plain", "--threshold"), ("plain", "--threads")}),
        (["dedup", "--method"], "sim", {("plain", "simhash")}),
        (["dedup"], "art", {("file", "art")}),
        (["dedup", "a.jsonl", "-o"], "o", {("file", "o")}),
        (["dedup", "a.jsonl", "--weights"], "w", {("file", "w")}),
        (["dedup", "a.jsonl", "--text-field"], "t", set()),
        (["index", "add"], "seen", {("file", "seen")}),
        (["index", "move", "seen.lw"], "c", {("file", "c")}),
    ],
)
def test_the_shell_completes_commands_options_values_and_files(arguments, incomplete, expected):
    from click.shell_completion import BashComplete

    completion = BashComplete(group, {}, "likewise", "_LIKEWISE_COMPLETE")
    found = {(item.type, item.value) for item in completion.get_completions(arguments, incomplete)}
    assert found == expected
