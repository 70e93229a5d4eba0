#!/usr/bin/env python3
"""Writes docs/reference/options.md (from the headers) and cli.md (from the command's own help).

  tools/reference.py --grebe build/release/grebe            writes both
  tools/reference.py --grebe build/release/grebe --check    exits 1 if they are out of date
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
# Structs that a caller fills in, in the order of the page.
STRUCTS = ("IndexRef", "ConnectOptions", "CreateOptions", "BuildOptions", "VerifyOptions",
           "OpenOptions", "CacheOptions", "GetOptions", "ScanOptions", "LayoutTable",
           "LayoutReportOptions", "LayoutPlanOptions", "ReplayOptions",
           "LayoutAdviceOptions", "RewriteRequest", "RewriteLayout", "RewriteSizes", "RewriteRun")


def comment_text(lines):
    return " ".join(line.strip().lstrip("/").strip() for line in lines).strip()


def read_structs():
    """name -> (header, prose, [(field, type, default, prose)])"""
    structs = {}
    for path in sorted((ROOT / "include" / "grebe").glob("*.h")):
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"((?:^//[^\n]*\n)*)^struct (\w+) \{\n(.*?)^\};", text,
                                 re.MULTILINE | re.DOTALL):
            prose = comment_text(match.group(1).split("\n"))
            structs[match.group(2)] = (path.name, prose, read_fields(match.group(3)))
    return structs


def read_fields(body):
    fields, above = [], []
    for line in body.split("\n"):
        field = re.match(r"\s+([\w:<>, *]+?)\s+(\w+)(?:\s*=\s*([^;]+))?;\s*(?://\s*(.*))?$", line)
        if line.strip().startswith("//"):
            more = re.match(r"\s{20,}//\s*(.*)$", line)
            if more and fields:  # the comment of the line above goes on
                fields[-1][3] = f"{fields[-1][3]} {more.group(1)}"
            else:
                above.append(line)
        elif field:
            prose = comment_text(above + [field.group(4) or ""])
            fields.append([field.group(2), field.group(1), field.group(3) or "", prose])
            above = []
        else:
            above = []
    return fields


def options_page():
    structs = read_structs()
    lines = ["# Options", "",
             "What the library's calls take, from the headers. Made by `tools/reference.py`; "
             "change the headers.", ""]
    for name in STRUCTS:
        if name not in structs:
            sys.exit(f"reference: no struct {name} in include/grebe")
        header, prose, fields = structs[name]
        about = f"`#include <grebe/{header}>`" + (f". {prose}" if prose else "")
        lines += [f"## {name}", "", about, "",
                  "| field | type | default | meaning |", "|---|---|---|---|"]
        for field, kind, default, meaning in fields:
            for pair in (("|", "\\|"), ("<table>", "TABLE"), ("<index_root>", "INDEX_ROOT")):
                meaning = meaning.replace(*pair)
            default = f"`{default}`" if default else ""
            lines.append(f"| {field} | `{kind}` | {default} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def help_of(grebe, *words):
    done = subprocess.run([grebe, *words, "--help"], text=True, capture_output=True, check=True,
                          env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"})
    text = done.stdout.replace(str(grebe), "grebe")
    return "\n".join(line.rstrip() for line in text.strip().split("\n"))


def subcommands(text):
    """The names listed under "Subcommands:" of a help text."""
    match = re.search(r"^(?:Subcommands|SUBCOMMANDS):\n((?:[ \t]+.*\n?)+)", text, re.MULTILINE)
    if not match:
        return []
    return re.findall(r"^  ?(\w[\w-]*)(?:\s|$)", match.group(1), re.MULTILINE)


CLI_INTRO = """\
# The command line

The command's own help, page by page. Made by `tools/reference.py`; change `cli/`.
Exit codes and errors: [errors.md](errors.md).

## Values of keys

`COL=VALUE` and the values in `--keys-from` are read by the key column's type:

| type | forms |
|---|---|
| integers, decimals | `42`, `-1.50`, `6.02e3` |
| floats | the same, and `nan`, `inf`, `-inf` |
| text | as it is; the empty value is the empty text |
| date, time, timestamp | `2024-02-29`, `12:00:00.25`, `2024-02-29T12:00:00Z` |
| boolean | `true`, `false` |
| UUID | with or without dashes |
| binary | `0x` and hex digits, or `base64:` and base64 |
| null | `--null COL`; in JSON lines `null` |

A value that the type cannot hold exactly (`7.5` for an integer) is a key that no row has. One that
is no value of the type (`x` for an integer) is InvalidArgument. In CSV all values are text of these
forms; in JSON lines numbers, booleans and strings.
"""


def cli_page(grebe):
    lines = [CLI_INTRO]

    def add(words):
        text = help_of(grebe, *words)
        lines.extend([f"## {' '.join(['grebe', *words])}", "", "```", text, "```", ""])
        for name in subcommands(text):
            add([*words, name])

    add([])
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--grebe", type=pathlib.Path, default=ROOT / "build/release/grebe")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    stale = 0
    for name, text in (("options.md", options_page()), ("cli.md", cli_page(args.grebe.resolve()))):
        path = REFERENCE / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if args.check:
            print(f"docs/reference/{name} is out of date: run tools/reference.py")
            stale = 1
        else:
            path.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
