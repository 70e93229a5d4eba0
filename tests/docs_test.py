#!/usr/bin/env python3
"""Runs every example of README.md and docs/guide: what a reader would type must do what it says.

A fenced block marked `console` is run. Lines that start with "$ " are commands (a line that ends
with a backslash goes on in the next); the others are the expected output of the command above
them. In those, "..." stands for any text within the line, and a line of just "..." for any number
of lines; "(nothing)" says that nothing is printed. A command without expected lines may print what
it likes. A command must exit with 0, unless the line "# exit N" follows its output. All blocks of
one document run in order, by bash, in one temporary folder that holds links to tools/ and
examples/; `grebe` and `python3` are those of the build and of the .venv.

  tests/docs_test.py [--grebe PATH] [DOCUMENT...]
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Example:
    def __init__(self, line, command):
        self.line = line
        self.command = command
        self.expected = []
        self.exit_code = 0


def read_examples(text):
    """The commands of the console blocks, with what they should print."""
    examples, inside, continued = [], False, False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            inside = not inside and line.strip() == "```console"
            continued = False
        elif not inside:
            continue
        elif continued:
            examples[-1].command += "\n" + line
            continued = line.endswith("\\")
        elif line.startswith("$ "):
            examples.append(Example(number, line[2:]))
            continued = line.endswith("\\")
        elif re.fullmatch(r"# exit \d+", line) and examples:
            examples[-1].exit_code = int(line.split()[-1])
        elif examples:
            examples[-1].expected.append(line.rstrip())
    return examples


def pattern_of(expected):
    """A regular expression for the expected lines."""
    parts = []
    if expected == ["(nothing)"]:
        return re.compile("")
    for line in expected:
        if line == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(re.escape(piece) for piece in line.split("...")) + r" *\n")
    return re.compile("".join(parts))


def run_document(path, environment):
    """Returns the failures of one document, as texts."""
    failures = []
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    with tempfile.TemporaryDirectory() as folder:
        for shared in ("tools", "examples"):
            os.symlink(ROOT / shared, pathlib.Path(folder) / shared)
        examples = read_examples(path.read_text(encoding="utf-8"))
        for example in examples:
            try:
                done = subprocess.run(["bash", "-c", example.command], cwd=folder, text=True,
                                      env=environment, stdin=subprocess.DEVNULL, timeout=120,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                output, exit_code = done.stdout, done.returncode
            except subprocess.TimeoutExpired:
                output, exit_code = "(no end within 120 s)\n", -1
            if output and not output.endswith("\n"):
                output += "\n"
            wrong = exit_code != example.exit_code
            if example.expected and not pattern_of(example.expected).fullmatch(output):
                wrong = True
            if wrong:
                want = "\n".join(example.expected)
                failures.append(f"{name}:{example.line}: $ {example.command}\n"
                                f"-- want (exit {example.exit_code}):\n{want}\n"
                                f"-- got (exit {exit_code}):\n{output}")
                break  # what follows builds on it
    print(f"{name}: {len(examples)} commands, {len(failures)} failed", flush=True)
    return failures


def documents():
    return [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--grebe", type=pathlib.Path,
                        default=os.environ.get("GREBE_BIN", ROOT / "build/release/grebe"))
    parser.add_argument("documents", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    grebe = pathlib.Path(args.grebe).resolve()
    if not grebe.is_file():
        sys.exit(f"docs_test: no {grebe}: run make build")

    with tempfile.TemporaryDirectory() as bin_folder:
        os.symlink(grebe, pathlib.Path(bin_folder) / "grebe")
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith(("AWS_", "GREBE_FAILPOINTS"))}
        environment["PATH"] = os.pathsep.join(
            [bin_folder, str(ROOT / ".venv/bin"), os.environ["PATH"]])
        environment.update(LC_ALL="C.UTF-8", COLUMNS="100", NO_COLOR="1")
        failures = []
        for path in args.documents or documents():
            failures += run_document(path.resolve(), environment)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
