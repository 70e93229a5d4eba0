#!/usr/bin/env python3
"""Checks the rules that a machine can check; run as a ctest, and by hand: tools/tidy.py

It reads who may include whom from the table in ARCHITECTURE.md, and measures files and functions.
What is too large already stands in tools/tidy_allow.txt, one line each; a line whose file got
better must be lowered or removed, so that the list only shrinks.

Prints one line a finding, path:line: what, and exits 1 when there is any.
"""

import argparse
import pathlib
import re
import sys

FILE_LINES_MAX = 800
HEADER_LINES_MAX = 250
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100
API_HEADERS_MAX = 12
API_LINES_MAX = 2500

CODE_FOLDERS = ("include", "src", "cli", "testing", "tests", "fuzz", "bench", "examples")
CODE_SUFFIXES = (".h", ".cc")
TEXT_FOLDERS = CODE_FOLDERS + ("cmake", "tools", ".ci")
TEXT_SUFFIXES = CODE_SUFFIXES + (".py", ".sh", ".cmake", ".txt", ".in", ".md")
SKIPPED_PARTS = {"build", ".git", ".venv", "__pycache__", "corpus", "regressions", "golden"}

# A dependency that only some places may include, so that it can be replaced there: prefix, places.
# Tests, testing/, bench/ and fuzz/ may include any of them.
CONFINED_INCLUDES = (
    ("parquet/", ("src/parquet/",)),
    ("arrow/filesystem/", ("src/store/",)),
    ("nlohmann/", ("src/table/", "src/index/manifest", "src/engine/", "cli/")),
    ("curl/", ("src/store/",)),
    ("openssl/", ("src/store/",)),
)

# In src/ the library never prints, aborts or exits, and never asserts on data.
BANNED_IN_LIBRARY = (
    (r"(?<!\w)(?:std::)?(?:printf|fprintf|vprintf|vfprintf|puts|fputs|putchar)\s*\(", "prints"),
    (r"\bstd::(?:cout|cerr|clog)\b", "prints"),
    (r"(?<![\w.>:])(?:std::|::)?(?:abort|exit|_exit|_Exit|quick_exit|terminate)\s*\(",
     "ends the process"),
    (r"(?<!\w)assert\s*\(", "asserts"),
    (r"\b(?:ARROW_)?D?CHECK(?:_\w+)?\s*\(", "asserts"),
    (r"\bValueOrDie\s*\(", "ends the process"),
)
BANNED_ANYWHERE = (
    (r"(?<!\w)(?:std::)?s?rand\s*\(\s*\w*\s*\)", "use base/rng.h with a seed that is printed"),
)
BANNED_IN_TESTS = (
    (r"(?<!\w)(?:sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(", "sleep"),
)


class Source:
    """One C++ file: its lines, and the same with comments and literals blanked out."""

    def __init__(self, root, path):
        self.path = path.relative_to(root).as_posix()
        self.text = path.read_text(encoding="utf-8", errors="replace")
        self.lines = self.text.split("\n")
        self.code = blank_comments_and_literals(self.text)
        self.is_header = self.path.endswith(".h")
        stem = self.path.rsplit(".", 1)[0]
        top = self.path.split("/")[0]
        self.is_test = stem.endswith(("_test", "_bench", "_fuzz")) or top in (
            "testing", "tests", "fuzz", "bench")


def blank_comments_and_literals(text):
    """Replaces comments, strings and character literals by spaces; newlines stay."""
    pattern = re.compile(
        r'//(?:[^\n\\]|\\.|\\\n)*'                      # line comment
        r"|/\*.*?\*/"                                   # block comment
        r'|R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"'  # raw string
        r'|"(?:[^"\\\n]|\\.|\\\n)*"'                    # string
        r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.[^'\n]*)'",  # character, not a digit separator
        re.DOTALL)
    # Strings keep their quotes (empty), so that #include "..." is read from the original text.
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


SCOPE = re.compile(r"(?:(?:inline|static|typedef|export|const|constexpr)\s+)*"
                   r"(?:namespace|class|struct|union|extern)\b")
TEMPLATE = re.compile(r"^\s*template\s*<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>")


def functions(code):
    """Yields (name, first line, last line) of each function that is not inside another one.

    A plain match of braces; first line: that of its name; good enough for code in our form.
    """
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group()),
                  code, flags=re.MULTILINE | re.DOTALL)
    stack = []          # "scope", "function" or "other"
    head_start = 0      # where the declaration before the next brace starts
    open_function = None
    depth_paren = 0
    for match in re.finditer(r"[{}();]", code):
        at, char = match.start(), match.group()
        if char == "(":
            depth_paren += 1
        elif char == ")":
            depth_paren -= 1
        elif char == ";":
            if depth_paren <= 0:
                head_start = at + 1
        elif char == "{":
            head = code[head_start:at]
            inside = stack[-1][0] if stack else "scope"
            if inside != "scope" or depth_paren > 0:
                kind = "other"
            else:
                kind = classify(head)
            stack.append((kind, depth_paren))
            depth_paren = 0
            if kind == "function":
                first = head_start + len(head) - len(head.lstrip())
                open_function = (function_name(head), line_of(code, first), len(stack))
            if kind != "other":
                head_start = at + 1
        else:
            kind, depth_paren = stack.pop() if stack else ("other", 0)
            if kind == "function":
                yield open_function[0], open_function[1], line_of(code, at)
                open_function = None
            if kind != "other":
                head_start = at + 1


def plain_head(head):
    """The declaration before a brace, without attributes, access labels and template lists."""
    head = re.sub(r"\[\[.*?\]\]|(?<!\w)alignas\s*\([^()]*\)", " ", head, flags=re.DOTALL)
    head = re.sub(r"(?<!\w)(?:public|private|protected)\s*:(?!:)", " ", head)
    while TEMPLATE.match(head):
        head = TEMPLATE.sub("", head)
    return head.strip()


def classify(head):
    """What the brace after this declaration opens: "scope", "function" or "other"."""
    head = plain_head(head)
    if re.match(r"(?:typedef\s+)?enum\b", head):
        return "other"
    if re.search(r"=\s*\[[^\]]*\]\s*\([^{}]*$", head):
        return "function"  # a lambda kept in a variable
    if head.endswith("=") or "(" not in head:
        return "scope" if SCOPE.match(head) and not head.endswith("=") else "other"
    parameters_end = end_of_parameters(head)
    rest = head[parameters_end:]
    # In a constructor's initialiser list, `member_{` is not yet the body.
    if re.search(r"(?<!:):(?!:)", rest) and not head.endswith((")", "}")):
        return "other"
    return "function"


def end_of_parameters(head):
    depth = 0
    for at, char in enumerate(head):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(head)


def function_name(head):
    """The name before the first parameter list; of a test macro also its arguments."""
    head = plain_head(head)
    match = re.search(r"(operator\s*[^\s(]+|operator\s*\(\s*\)|~?[\w:~]+)\s*\(", head)
    if not match:
        return "?"
    name = re.sub(r"\s+", "", match.group(1))
    if re.fullmatch(r"[A-Z][A-Z0-9_]{3,}", name):
        arguments = head[match.end():end_of_parameters(head) - 1]
        return re.sub(r"\s+", "", f"{name}({arguments})")
    return name


def read_rooms(root):
    """room -> the set of rooms it may include, from ARCHITECTURE.md.

    The table's rows are "| room | names |", names being rooms, "(...)" remarks, "all rooms" or
    "include/grebe only"; a name with a slash is one file. The row of "every room" names what any
    room may include.
    """
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    match = re.search(r"\|\s*room\s*\|\s*may include\s*\|\n\|[-| ]+\|\n((?:\|.*\|\n)+)", text)
    if not match:
        raise SystemExit("ARCHITECTURE.md: no table `| room | may include |`")
    rooms, common = {}, set()
    for row in match.group(1).strip().split("\n"):
        names, allowed = (cell.strip() for cell in row.strip("|").split("|"))
        allowed = re.sub(r"\([^)]*\)", " ", allowed)
        if names == "every room":
            common = set(allowed.split())
            continue
        for name in names.split():
            if "include/grebe only" in allowed:
                rooms[name] = {"grebe"}
            elif "all rooms" in allowed:
                rooms[name] = None
            else:
                rooms[name] = set(allowed.split())
    return rooms, common


class Tidy:
    def __init__(self, root):
        self.root = root
        self.findings = []
        self.allowed = {}       # (rule, subject) -> allowed size
        self.used = {}          # (rule, subject) -> measured size
        self.rooms, self.common = read_rooms(root)
        self.lists = self.read_lists()

    def report(self, path, line, what):
        self.findings.append(f"{path}:{line}: {what}")

    def measure(self, rule, subject, size, limit, path, line, what):
        """A size against its limit, or against what tidy_allow.txt grants."""
        if size <= limit:
            return
        granted = self.allowed.get((rule, subject))
        self.used[(rule, subject)] = max(size, self.used.get((rule, subject), 0))
        if granted is None or size > granted:
            self.report(path, line, f"{what}: {size}, at most {granted or limit}")

    def read_allowed(self):
        path = self.root / "tools" / "tidy_allow.txt"
        if not path.exists():
            return
        for number, line in enumerate(path.read_text().split("\n"), 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) != 3 or not words[2].isdigit():
                self.report("tools/tidy_allow.txt", number, "want: rule subject size")
                continue
            self.allowed[(words[0], words[1])] = int(words[2])

    def check_ratchet(self):
        for key, granted in self.allowed.items():
            size = self.used.get(key, 0)
            if size < granted:
                what = f"lower to {size}" if size else "remove"
                self.report("tools/tidy_allow.txt", 1, f"{what}: {key[0]} {key[1]} {granted}")

    def files(self, folders, suffixes):
        for folder in folders:
            top = self.root / folder
            for path in sorted(top.rglob("*")) if top.is_dir() else []:
                parts = path.relative_to(self.root).parts
                if path.is_file() and path.suffix in suffixes and not SKIPPED_PARTS & set(parts):
                    yield path
        if folders is TEXT_FOLDERS:
            yield from (p for p in sorted(self.root.glob("*")) if p.suffix in suffixes)

    def run(self):
        self.read_allowed()
        for path in self.files(TEXT_FOLDERS, TEXT_SUFFIXES):
            self.check_text(path)
        for path in self.files(CODE_FOLDERS, CODE_SUFFIXES):
            source = Source(self.root, path)
            self.check_size(source)
            self.check_includes(source)
            self.check_banned(source)
            self.check_listed(source)
        self.check_api()
        self.check_documents()
        self.check_failpoints()
        self.check_ratchet()
        return self.findings

    def check_text(self, path):
        name = path.relative_to(self.root).as_posix()
        text = path.read_text(encoding="utf-8", errors="replace")
        # Lists of hashes are as long as they are; tables in documents too.
        wide = name.startswith("tools/requirements") or path.suffix == ".md"
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                self.report(name, number, "trailing blank")
            if not wide and len(line) > COLUMNS_MAX:
                self.report(name, number, f"{len(line)} columns, at most {COLUMNS_MAX}")
            if "\t" in line and path.suffix in CODE_SUFFIXES:
                self.report(name, number, "tab")
        if text and not text.endswith("\n"):
            self.report(name, text.count("\n") + 1, "no newline at the end")

    def check_size(self, source):
        lines = len(source.lines) - 1
        limit = HEADER_LINES_MAX if source.is_header else FILE_LINES_MAX
        self.measure("file", source.path, lines, limit, source.path, 1, "lines in the file")
        for name, first, last in functions(source.code):
            self.measure("function", f"{source.path}:{name}", last - first + 1,
                         FUNCTION_LINES_MAX, source.path, first, f"lines in function {name}")
        self.check_name(source)
        if source.is_header and not re.search(r"^#pragma once$", source.text, re.MULTILINE):
            self.report(source.path, 1, "no #pragma once")

    def check_name(self, source):
        """libparquet's own headers would include ours, if one had the name of theirs."""
        if source.is_header and source.path.startswith("src/parquet/"):
            name = source.path.split("/")[-1]
            wheel = ".venv/lib/python3*/site-packages/pyarrow/include/parquet/" + name
            if any(self.root.glob(wheel)):
                self.report(source.path, 1, "libparquet has a header of this name")

    def check_includes(self, source):
        room = self.room_of(source.path)
        for number, line in enumerate(source.lines, 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not match:
                continue
            target = match.group(2)
            for prefix, places in CONFINED_INCLUDES:
                if match.group(1) == "<" and target.startswith(prefix) and not source.is_test:
                    if not source.path.startswith(places):
                        self.report(source.path, number,
                                    f"<{target}> is for {', '.join(places)} only")
            if match.group(1) == '"' and room is not None:
                self.check_include(source, room, target, number)

    def room_of(self, path):
        parts = path.split("/")
        if parts[0] == "src" and len(parts) > 2:
            return parts[1]
        return parts[0] if parts[0] in self.rooms else None

    def check_include(self, source, room, target, number):
        if room not in self.rooms:
            self.report(source.path, number, f"room {room} is not in ARCHITECTURE.md's table")
            return
        top = target.split("/")[0]
        allowed = self.rooms[room]
        if top == room or "/" not in target or target in self.common:
            return
        if top in ("testing", "tests"):
            if not source.is_test:
                self.report(source.path, number, f"{target}: only tests include {top}/")
            return
        if allowed is not None and top not in allowed and target not in allowed:
            self.report(source.path, number, f"room {room} may not include {target}")

    def check_banned(self, source):
        rules = list(BANNED_ANYWHERE)
        if source.path.startswith("src/") and not source.is_test:
            rules += BANNED_IN_LIBRARY
        for pattern, what in rules:
            for match in re.finditer(pattern, source.code):
                call = match.group().strip()
                self.report(source.path, line_of(source.code, match.start()), f"{call}: {what}")
        if source.is_test:
            for pattern, what in BANNED_IN_TESTS:
                found = list(re.finditer(pattern, source.code))
                if found:
                    self.measure(what, source.path, len(found), 0, source.path,
                                 line_of(source.code, found[0].start()), f"calls in a test, {what}")

    def check_listed(self, source):
        """A .cc that no CMakeLists.txt names is dead: by its path, or in its own folder's list."""
        if not source.path.endswith(".cc"):
            return
        folder, name = source.path.rsplit("/", 1)
        stem = re.sub(r"(_fuzz)?\.cc$", "", name)  # fuzz/CMakeLists.txt lists bare names
        own = self.lists.get(f"{folder}/CMakeLists.txt", "")
        if re.search(rf"(?<![\w/]){stem}(?!\w)", own):
            return
        # testing/ has no list of its own: each test program names the doubles that it uses.
        if not any(f"{folder.split('/')[-1]}/{name}" in text or f"/{name}" in text
                   for text in self.lists.values()):
            self.report(source.path, 1, "no CMakeLists.txt names this file")

    def read_lists(self):
        paths = [*self.root.glob("CMakeLists.txt"), *self.root.glob("cmake/*.cmake")]
        for folder in CODE_FOLDERS:
            paths += (self.root / folder).rglob("CMakeLists.txt")
        # Programs of other projects' libraries are built by the scripts that use them.
        paths += [*self.root.glob("bench/**/*.sh"), *self.root.glob("bench/**/*.py")]
        return {p.relative_to(self.root).as_posix(): p.read_text() for p in paths}

    def check_api(self):
        headers = list(self.files(("include",), (".h",)))
        lines = sum(p.read_text().count("\n") for p in headers)
        if len(headers) > API_HEADERS_MAX:
            self.report("include/grebe", 1, f"{len(headers)} headers, at most {API_HEADERS_MAX}")
        if lines > API_LINES_MAX:
            self.report("include/grebe", 1, f"{lines} lines, at most {API_LINES_MAX}")

    def check_documents(self):
        """A document starts with its one title, and its relative links lead somewhere."""
        paths = [*self.root.glob("*.md"), *(self.root / "docs").rglob("*.md")]
        for path in sorted(paths):
            name = path.relative_to(self.root).as_posix()
            text = path.read_text(encoding="utf-8")
            prose = re.sub(r"^```.*?^```", lambda m: "\n" * m.group().count("\n"), text,
                           flags=re.MULTILINE | re.DOTALL)
            titles = re.findall(r"^# .+$", prose, re.MULTILINE)
            if len(titles) != 1 or not text.startswith("# "):
                self.report(name, 1, "want one title, on the first line")
            for match in re.finditer(r"\]\(([^)#\s]+)(#[^)]*)?\)", prose):
                link = match.group(1)
                if "://" in link or link.startswith("mailto:"):
                    continue
                if not (path.parent / link).exists():
                    self.report(name, line_of(prose, match.start()), f"dead link {link}")

    def check_failpoints(self):
        """Every failpoint stands in TESTING.md, and only those that exist."""
        named = {}
        for path in self.files(("src",), CODE_SUFFIXES):
            text = path.read_text(encoding="utf-8")
            for match in re.finditer(r'GREBE_FAILPOINT\(\s*"([\w.]+)"', text):
                if "_test." not in path.name and "failpoint.h" not in path.name:
                    named[match.group(1)] = (path.relative_to(self.root).as_posix(),
                                             line_of(text, match.start()))
        document = self.root / "TESTING.md"
        text = document.read_text(encoding="utf-8") if document.exists() else ""
        listed = set(re.findall(r"^\| `([\w]+\.[\w.]+)` \|", text, re.MULTILINE))
        for name in sorted(set(named) - listed):
            self.report(*named[name], f"failpoint {name} is not listed in TESTING.md")
        for name in sorted(listed - set(named)):
            self.report("TESTING.md", 1, f"no failpoint {name} exists")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--functions", action="store_true", help="print every function's length")
    args = parser.parse_args()
    tidy = Tidy(args.root.resolve())
    if args.functions:
        for path in tidy.files(CODE_FOLDERS, CODE_SUFFIXES):
            source = Source(tidy.root, path)
            for name, first, last in functions(source.code):
                print(f"{last - first + 1:5} {source.path}:{first} {name}")
        return 0
    findings = tidy.run()
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} findings", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
